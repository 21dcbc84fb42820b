"""Long measurements; each writes its result to `docs/results/`."""
