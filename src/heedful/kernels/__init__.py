"""Kernels for CPUs and GPUs; each has a plain twin of documented functions of torch."""
