"""
Settings: schema, built-in recipes, TOML files and `key=value` changes.

Reads no model and no data, and needs no torch. Only the modules that build models, data and
training read settings.
"""
