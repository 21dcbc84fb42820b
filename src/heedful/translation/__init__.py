"""Trained runs as objects that translate, score and align."""
