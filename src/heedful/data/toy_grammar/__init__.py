"""The parts of the embedded corpus: its words, its trees, and how each language says them."""
