"""Models from Hugging Face's hub, converted once and cached, and uploads of runs."""
