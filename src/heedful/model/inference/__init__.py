"""Kernels and layouts for inference."""
