"""Measurements of heedful, their records and pages."""

# Before torch, so that idle threads do not spin.
import heedful  # noqa: F401
