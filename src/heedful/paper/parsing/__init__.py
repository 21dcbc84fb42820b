"""Baselines for Table 4 without a neural model: probabilistic grammars and trivial trees."""
