"""Figures and stand-alone pages from arrays and tokens."""
