"""Import and export of Marian models, in Hugging Face's folder format."""
