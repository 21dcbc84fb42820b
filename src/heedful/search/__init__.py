"""From a model's probabilities to translations."""
