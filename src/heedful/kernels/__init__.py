"""Kernels for CPUs and GPUs; each has a plain equivalent in documented functions of torch."""
