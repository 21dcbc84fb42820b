"""C for what torch would do in many passes; compiled where there is a compiler, never needed."""
