"""
Settings: schema, built-in recipes, TOML files and `key=value` changes.

Reads no model and no data, and needs no torch; only the builders above it read settings.
"""
