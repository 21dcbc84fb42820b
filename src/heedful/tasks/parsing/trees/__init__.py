"""Constituency trees: read, written as symbols, scored, drawn; torch is not needed."""
