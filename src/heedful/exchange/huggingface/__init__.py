"""What the classes of Hugging Face share: settings, weights and the original that runs."""
