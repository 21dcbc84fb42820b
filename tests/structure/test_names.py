"""Names say what they hold or do; `make check` reads those of the repository."""

import pytest
from tools import names


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        ("found = 1", ["found"]),
        ("one, rest = pair", ["one"]),
        ("rows = [each for each in table]", ["each"]),
        ("def join(first, other): pass", ["other"]),
        ("def f(*, given=None): pass", ["given"]),
        ("if whole := read(): pass", ["whole"]),
        ("made, said = run(), read()", ["made", "said"]),
        ("with replacing(goal) as beside: pass", ["beside"]),
        ("def _merged(rows): pass", ["_merged"]),
        ("async def _written(rows): pass", ["_written"]),
        ("def _embed(rows): pass", []),
        ("def _merged_rows(rows): pass", []),
        ("def __eq__(self, other): return self.rows == other.rows", []),
        ("class Report: kept: int = 0", []),
        ("entry.found = {'one': 1}; f(kept=True)", []),
    ],
)
def test_a_name_that_says_nothing_is_refused_with_its_line(source, refused):
    assert list(names.refused(f"\n{source}")) == [(2, name) for name in refused]
