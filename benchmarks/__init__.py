"""Benchmarks of heedful, with their records and pages."""

# This import must precede torch, so that idle threads do not spin.
import heedful  # noqa: F401
