"""Parts common to all classes of Hugging Face: settings, weights, and the original model."""
