"""The edit distance of two strings."""


def edit_distance(text: str, reference: str) -> int:
    """Return the minimum number of insertions, deletions and substitutions between two strings."""
    # Myers (1999), “A Fast Bit-Vector Algorithm for Approximate String Matching”, in the form of
    # Hyyrö (2003): a column of the table is two long integers, whose bits mark where it rises by
    # one and where it falls.
    if not text:
        return len(reference)
    places: dict[str, int] = {}
    for place, character in enumerate(text):
        places[character] = places.get(character, 0) | 1 << place
    every, last = (1 << len(text)) - 1, 1 << (len(text) - 1)
    rises, falls, distance = every, 0, len(text)
    for character in reference:
        equal = places.get(character, 0)
        diagonal = (((equal & rises) + rises) ^ rises) | equal | falls
        right_rises = falls | ~(diagonal | rises) & every
        right_falls = rises & diagonal
        distance += bool(right_rises & last) - bool(right_falls & last)
        right_rises = right_rises << 1 | 1
        rises = ((right_falls << 1) | ~(diagonal | right_rises)) & every
        falls = right_rises & diagonal & every
    return distance
