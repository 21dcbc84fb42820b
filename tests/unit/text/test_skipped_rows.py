"""Rows that are left out are counted by file, with the first reasons; or none may be."""

import pytest

from heedful.errors import TextError
from heedful.text.skipped_rows import SkippedRows


def test_each_file_has_a_note_with_the_first_reasons() -> None:
    skipped = SkippedRows()
    assert list(skipped.notes()) == []
    skipped.add("a.tsv", 1_200, "has 1 of 2 columns")
    for number in range(1, 6):
        skipped.add("b.tmx", f"unit {number}", "is bad")
    assert list(skipped.notes()) == [
        "a.tsv: 1 row was skipped (line 1,200 has 1 of 2 columns)",
        "b.tmx: 5 rows were skipped (unit 1 is bad; unit 2 is bad; unit 3 is bad; …)",
    ]


def test_a_row_that_would_move_other_lines_is_an_error() -> None:
    with pytest.raises(TextError, match=r"a\.tsv must have text in every row, .*line 3 is bad"):
        SkippedRows(refuse=True).add("a.tsv", 3, "is bad")


def test_a_remark_is_made_once_before_the_counts() -> None:
    skipped = SkippedRows()
    skipped.add("a.csv", 2, "is bad")
    for _ in range(2):
        skipped.remark("a.csv", "cells are separated by tabs")
    assert list(skipped.notes()) == [
        "a.csv: cells are separated by tabs",
        "a.csv: 1 row was skipped (line 2 is bad)",
    ]
