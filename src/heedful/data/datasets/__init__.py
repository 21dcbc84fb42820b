"""Corpora that people use: where they lie, how they are fetched, checked and unpacked."""
