"""Longer measurements; each writes what it found to `docs/results/`."""
