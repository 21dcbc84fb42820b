"""C functions of search and training, compiled if there is a compiler and never required."""
