"""Statements of the paper and of notes about it, each decided by a measurement."""
