"""Training on a GPU: steps with tensors of fixed shapes, replayed as CUDA graphs."""
