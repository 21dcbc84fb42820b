"""Import and export of T5 models, 1.0 and 1.1, in Hugging Face's folder format."""
