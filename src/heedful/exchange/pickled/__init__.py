"""Pickled checkpoints of other toolkits, read without executing code."""
