"""Figures and self-contained pages, drawn from arrays and tokens."""
