"""Word alignments: files, extraction from attention, and replacement of unknown words."""
