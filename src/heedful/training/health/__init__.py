"""Checks at each validation that a training is going well."""
