"""Search: from a model's probabilities to translations."""
