"""Texts that are generated, or read from an installed package, and need no download."""
