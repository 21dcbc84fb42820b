"""The Transformer and its building blocks."""
