"""Word alignments: written, read, taken from attention."""
