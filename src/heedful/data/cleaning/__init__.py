"""Which pairs are left out, judged by their text."""
