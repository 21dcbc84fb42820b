"""Filters that judge pairs by their text and length."""
