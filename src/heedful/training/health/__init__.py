"""Health checks of a training run, made at each validation."""
