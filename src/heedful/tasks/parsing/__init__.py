"""Constituency parsing: sentences in, trees out (Vaswani et al. 2017, section 6.3)."""
