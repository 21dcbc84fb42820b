"""The edit distance by its textbook table, to compare with."""


def plain_edit_distance(text: str, reference: str) -> int:
    """Fill the table of Wagner and Fischer 1974 row by row."""
    row = list(range(len(reference) + 1))
    for i, mine in enumerate(text, start=1):
        previous, row = row, [i]
        for j, other in enumerate(reference, start=1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (mine != other)))
    return row[-1]
