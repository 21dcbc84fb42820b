"""Word alignments: their files, their extraction from attention, replacement of unknown words."""
