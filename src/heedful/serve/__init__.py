"""A trained run behind HTTP."""
