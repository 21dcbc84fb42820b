"""Parsers without a neural model, to compare with in Table 4: grammars (PCFG) and floors."""
