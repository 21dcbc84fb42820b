"""Is a training going well: checks of a model at each validation."""
