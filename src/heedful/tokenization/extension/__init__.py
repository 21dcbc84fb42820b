"""Extension of a trained vocabulary with subwords of another language; old ids are kept."""
