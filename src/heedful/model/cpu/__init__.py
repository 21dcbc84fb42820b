"""Kernels for training on processors."""
