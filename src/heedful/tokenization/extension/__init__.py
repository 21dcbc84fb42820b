"""Extension of a trained vocabulary by the subwords of another language; old ids stay."""
