"""Checkpoints that other toolkits pickled, read without executing any of it."""
