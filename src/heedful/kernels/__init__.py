"""CPU kernels for training, each compiled one with a plain twin."""
