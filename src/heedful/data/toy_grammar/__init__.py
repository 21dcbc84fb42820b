"""The toy corpus: lexicon, syntax trees, and their realization in English and French."""
