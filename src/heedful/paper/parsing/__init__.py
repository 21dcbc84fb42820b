"""Parsers without a model, which Table 4 compares with: a grammar (PCFG), and floors."""
