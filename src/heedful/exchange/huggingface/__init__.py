"""Parts shared by all conversions to and from `transformers`: settings, weights, models."""
