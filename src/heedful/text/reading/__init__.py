"""Preparation of real-world text for a model, and restoration of its translation."""
