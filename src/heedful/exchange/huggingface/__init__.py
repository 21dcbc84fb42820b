"""Parts common to all classes of Hugging Face: settings, weights and running the original."""
