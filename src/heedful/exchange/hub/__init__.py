"""Models of Hugging Face's hub: fetched by name, converted once, kept; and runs uploaded to it."""
