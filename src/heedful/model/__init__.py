"""The Transformer and the blocks it is made of."""
