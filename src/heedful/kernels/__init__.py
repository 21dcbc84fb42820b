"""CPU kernels for training; each compiled kernel has a plain twin."""
