"""Import of fairseq models."""
