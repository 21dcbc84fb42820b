"""Numbers with their nouns, for messages."""


def count_noun(number: int, noun: str) -> str:
    """
    Format a number with its noun.

    >>> count_noun(1, "tree"), count_noun(2000, "tree")
    ('1 tree', '2,000 trees')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"
