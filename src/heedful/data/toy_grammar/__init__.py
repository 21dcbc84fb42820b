"""The toy corpus: lexicon, syntax trees, and their realisation in English and French."""
