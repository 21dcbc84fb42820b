"""
Settings: what they are, which recipes are built in, how files and options change them.

Reads no model and no data, and needs no torch; only the builders above it read settings.
"""
