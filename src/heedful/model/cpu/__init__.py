"""CPU kernels for training."""
