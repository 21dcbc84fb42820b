"""A trained vocabulary gets the subwords of another language; old ids stay."""
