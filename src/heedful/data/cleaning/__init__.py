"""Filters that judge pairs by their text."""
