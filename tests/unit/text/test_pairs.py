from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import UserError
from heedful.text.pairs import PairRows, first_difference, store_pairs, stored_pairs

PAIRS = [("the dog", "der Hund"), ("a cat", "")]
ENGLISH, GERMAN = map(list, zip(*PAIRS, strict=True))
LANGUAGES = [{"en": en, "de": de} for en, de in PAIRS]
NAN = float("nan")


class TableFrame:
    """What pandas and polars have in common: names of columns, and columns by their names."""

    def __init__(self, **columns: list[Any]) -> None:
        self.columns = list(columns)
        self._columns = columns

    def __getitem__(self, name: str) -> list[Any]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)


class Rows:
    """What a split of `datasets` is: rows that are dicts, and names of columns."""

    def __init__(self, rows: list[Mapping[str, Any]]) -> None:
        self.column_names = list(rows[0])
        self._rows = rows

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._rows)


def read(pairs: Iterable[Any], source: str = "", target: str = "") -> list[tuple[str, ...]]:
    return [tuple(pair) for pair in PairRows("pairs", pairs).read(source, target)]


@pytest.mark.parametrize(
    "pairs",
    [
        PAIRS,
        [list(pair) for pair in PAIRS],
        zip(ENGLISH, GERMAN, strict=True),
        (pair for pair in PAIRS),
        LANGUAGES,
        TableFrame(en=ENGLISH, de=GERMAN),
        TableFrame(id=[1, 2], translation=LANGUAGES),
        Rows(LANGUAGES),
        Rows([{"id": "0", "translation": row} for row in LANGUAGES]),
        [{"source": en, "translation": de} for en, de in PAIRS],
    ],
)
def test_pairs_of_every_form_are_read(pairs):
    assert read(pairs, "en") == PAIRS


@pytest.mark.parametrize(
    ("languages", "is_swapped"),
    [(("de", "en"), True), (("de", ""), True), (("", "en"), True), (("en", "de"), False),
     (("", "de"), False), (("fr", "it"), False), (("en", "en"), False)],
)  # fmt: skip
def test_columns_that_are_named_by_the_languages_are_found(languages, is_swapped):
    expected = [(de, en) for en, de in PAIRS] if is_swapped else PAIRS
    assert read(LANGUAGES, *languages) == expected


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "is empty; a generator can be read only once"),
        (TableFrame(en=[], de=[]), "is empty"),
        (["a sentence"], "its pair 0 is 'a sentence'; give [(source, target)"),
        (["ab"], "its pair 0 is 'ab'"),
        ([*PAIRS, ("a",)], "its pair 2 is ('a',)"),
        ([("a", "b", "c")], "its pair 0 is ('a', 'b', 'c')"),
        ([{"a", "b"}], "its pair 0 is {"),
        ([5], "its pair 0 is 5"),
        ([*PAIRS, {"en": "a", "de": "b"}], "its pair 2 is {"),
        ([*LANGUAGES, ("a", "b")], "its pair 2 is ('a', 'b')"),
        ([*LANGUAGES, {"en": "a", "fr": "b"}], "its pair 2 is {"),
        (TableFrame(a=["x"], b=["y"], c=["z"]), "its columns are a, b, c; choose two: zip(table["),
        (Rows([{"translation": LANGUAGES[0]}]), "but the order of en and de does not; set"),
        ([{"translation": "x"}], "its columns are translation"),
        ([("a", None)], "the target of pair 0 is None; leave such pairs out, as table.dropna()"),
        ([*PAIRS, (NAN, "b")], "the source of pair 2 is nan"),
        ([(b"a", "b")], "the source of pair 0 is b'a'"),
        ([("a\nb", "b")], "the source of pair 0 has a line break or a NUL: 'a\\nb'; write spaces"),
        ([("a", "b\r")], "the target of pair 0 has a line break"),
        ([("a\0", "b")], "the source of pair 0 has a line break or a NUL"),
        ([("a", "b\ud800")], "the target of pair 0 has an unpaired surrogate at position 1"),
    ],
)
def test_what_is_no_pair_of_lines_is_refused(pairs, message):
    with pytest.raises(UserError) as caught:
        read(pairs)
    assert message in str(caught.value)
    assert str(caught.value).startswith("`pairs` must ")


def test_stored_pairs_are_the_same_lines(tmp_path: Path) -> None:
    pairs = [("\ufefffirst", "x\u2028y "), *PAIRS]
    assert stored_pairs(tmp_path, "train") is None
    store_pairs(tmp_path, "train", PairRows("pairs", pairs).read())
    corpus = stored_pairs(tmp_path, "train")
    assert corpus is not None
    assert first_difference(corpus, PairRows("pairs", pairs).read()) is None
    for other, number in ((pairs[:2], 2), ([*pairs, ("a", "b")], 3), ([*pairs[:2], ("a", "")], 2)):
        assert first_difference(corpus, PairRows("pairs", other).read()) == number


def test_pairs_that_end_with_an_error_leave_nothing(tmp_path: Path) -> None:
    def failing() -> Iterator[tuple[str, str]]:
        yield PAIRS[0]
        raise ValueError("the source of the pairs")

    (tmp_path / ".train.source.0123.tmp").write_text("of a process that was killed")
    with pytest.raises(ValueError, match="the source of the pairs"):
        store_pairs(tmp_path, "train", PairRows("pairs", failing()).read())
    assert list(tmp_path.iterdir()) == []
