"""Tokenizers: SentencePiece, byte-pair codes, word lists."""
