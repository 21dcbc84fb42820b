"""Training on a GPU: steps of fixed shapes, replayed from graphs."""
