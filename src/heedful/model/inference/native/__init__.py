"""C kernels for inference, compiled where there is a compiler and never required."""
