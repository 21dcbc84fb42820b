"""Parsers without a model, which Table 4 compares with: grammars (PCFG), and floors."""
