"""Marian's models, in the folders of Hugging Face."""
