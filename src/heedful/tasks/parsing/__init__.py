"""Constituency parsing: trees from sentences (Vaswani et al. 2017, section 6.3)."""
