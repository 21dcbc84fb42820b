"""Word alignments: files, extraction from attention, replacement of unknown words."""
