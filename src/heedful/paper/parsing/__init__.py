"""Baselines for Table 4 without a neural model: probabilistic grammars (PCFG) and floors."""
