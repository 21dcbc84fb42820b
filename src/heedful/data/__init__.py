"""Sentence pairs, from text files to batches of ids."""
