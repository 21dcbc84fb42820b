"""Other implementations of a model, to compare an exchanged one with."""
