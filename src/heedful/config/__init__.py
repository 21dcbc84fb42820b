"""
Settings: schema, built-in recipes, TOML files and `key=value` changes.

This package does not read models or data, and does not need torch.
"""
