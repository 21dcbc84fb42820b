"""Evaluation of translations and models, each score with its signature."""
