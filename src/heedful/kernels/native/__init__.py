"""C functions of search and training, compiled where there is a compiler and never required."""
