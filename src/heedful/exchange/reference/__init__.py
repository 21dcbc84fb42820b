"""Reference implementations for parity checks."""
