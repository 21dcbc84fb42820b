"""CPU kernels for training, compiled ones beside plain ones."""
