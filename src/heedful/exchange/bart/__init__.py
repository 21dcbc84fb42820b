"""Import and export of BART, mBART and M2M100 (NLLB) models, in Hugging Face's folder format."""
