"""How good a translation or a model is, in numbers that say how they were made."""
