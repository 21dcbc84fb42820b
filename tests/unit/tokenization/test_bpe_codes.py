import json
import lzma
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import TokenizerError
from heedful.tokenization.bpe import Merges
from heedful.tokenization.bpe_codes import BpeCodes, join_pieces, words_of
from tests.support.growth import assert_grows_linearly

LOW = b"#version: 0.2\nl o\nlo w</w>\ne r</w>\nlo w\nlow er</w>\n"


OUTER = "\r\n "  # what subword-nmt leaves around a line, and a model never sees


def cut(codes: BpeCodes, line: str) -> str:
    return " ".join(codes.pieces(line))


def unpacked(path: Path) -> list[str]:
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().split("\n")


# Against subword-nmt itself: what it wrote, line for line.


def test_the_corpus_of_subword_nmt_is_cut_like_there(corpora: Path) -> None:
    folder = corpora / "fixtures-bpe" / "subword-nmt"
    codes = BpeCodes((folder / "bpe.ref").read_bytes())
    for case in json.loads((folder / "apply-cases.json").read_text("utf-8"))["cases"]:
        assert cut(codes, case["in"]) == case["out"].strip(OUTER)
    lines = (folder / "corpus.en").read_text("utf-8").split("\n")
    expected = (folder / "corpus.bpe.ref.en").read_text("utf-8").split("\n")
    assert [cut(codes, line) for line in lines] == [line.strip(OUTER) for line in expected]


@pytest.mark.parametrize("language", ["de", "en"])
def test_iwslt14_is_cut_as_subword_nmt_cut_it(corpora: Path, language: str) -> None:
    folder = corpora / "fixtures-bpe" / "iwslt14-joint"
    with lzma.open(folder / "code.xz") as file:
        codes = BpeCodes(file.read())
    text = unpacked(corpora / f"ted-iwslt/iwslt14-de-en/valid.lc.tok.{language}.xz")
    expected = unpacked(folder / f"valid.bpe.{language}.xz")
    assert len(text) == len(expected) == 7284
    assert [cut(codes, line) for line in text] == expected
    assert [join_pieces(line.split(" ")) for line in expected] == text


# Against the definition, written down as slowly as it is said.


def merged_slowly(word: list[str], ranks: dict[tuple[str, str], int]) -> tuple[str, ...]:
    while pairs := [(ranks[pair], pair) for pair in pairwise(word) if pair in ranks]:
        best = min(pairs)[1]
        done: list[str] = []
        while word:
            taken = 2 if tuple(word[:2]) == best else 1
            done.append("".join(word[:taken]))
            word = word[taken:]
        word = done
    return tuple(word)


@st.composite
def merges(draw: st.DrawFn) -> dict[tuple[str, str], int]:
    symbols, ranks = ["a", "b", "c"], {}
    for rank in range(draw(st.integers(0, 12))):
        pair = draw(st.sampled_from(symbols)), draw(st.sampled_from(symbols))
        ranks.setdefault(pair, rank)
        symbols.append("".join(pair))
    return ranks


@given(ranks=merges(), word=st.text("abc", max_size=30))
def test_the_heap_merges_what_the_definition_merges(
    ranks: dict[tuple[str, str], int], word: str
) -> None:
    table = Merges(lambda first, second: ranks.get((first, second)))
    expected = merged_slowly(list(word), ranks)
    assert table.merge(word) == expected
    assert table.sample(word, 0.0, Random(1)) == expected
    assert "".join(table.sample(word, 0.5, Random(1))) == word


def test_a_long_word_takes_time_by_its_length() -> None:
    def cut(count: int) -> None:
        pieces = BpeCodes(LOW).cut("lower" * count)
        assert pieces == (*("low@@", "e@@", "r@@") * (count - 1), "lower")

    assert_grows_linearly(cut, 4_000)


# Dropout, against every outcome and its probability.


def outcomes(
    word: tuple[str, ...], ranks: dict[tuple[str, str], int], dropout: float
) -> Iterator[tuple[tuple[str, ...], float]]:
    places = [place for place, pair in enumerate(pairwise(word)) if pair in ranks]
    for kept in product((False, True), repeat=len(places)):
        probability = 1.0
        for keep in kept:
            probability *= 1 - dropout if keep else dropout
        there = [place for place, keep in zip(places, kept, strict=True) if keep]
        if not there:
            yield word, probability
            continue
        best = min(there, key=lambda place: (ranks[word[place : place + 2]], place))
        pair, merged, place = word[best : best + 2], [], 0
        while place < len(word):
            taken = 2 if place in there and word[place : place + 2] == pair else 1
            merged.append("".join(word[place : place + taken]))
            place += taken
        for outcome, further in outcomes(tuple(merged), ranks, dropout):
            yield outcome, probability * further


@pytest.mark.parametrize("dropout", [0.1, 0.5])
def test_dropout_has_the_probabilities_of_the_paper(dropout: float) -> None:
    ranks = {("a", "a"): 0, ("a", "b"): 1, ("aa", "b"): 2, ("b", "aa"): 3}
    word, draws, generator = tuple("aaabaa"), 20_000, Random(1)
    expected: Counter[tuple[str, ...]] = Counter()
    for outcome, probability in outcomes(word, ranks, dropout):
        expected[outcome] += probability  # type: ignore[assignment]
    assert sum(expected.values()) == pytest.approx(1)
    table = Merges(lambda first, second: ranks.get((first, second)))
    counts = Counter(table.sample(word, dropout, generator) for _ in range(draws))
    assert counts.keys() <= expected.keys()
    for outcome, probability in expected.items():
        spread = (draws * probability * (1 - probability)) ** 0.5
        assert abs(counts[outcome] - draws * probability) <= 5 * spread + 1, outcome


def test_dropout_of_codes_knows_the_end_of_the_word() -> None:
    codes, generator = BpeCodes(LOW), Random(1)
    found = {codes.sample("lower", 0.5, generator) for _ in range(500)}
    assert {("lower",), ("l@@", "o@@", "w@@", "e@@", "r"), ("low@@", "er")} <= found
    assert {join_pieces(pieces) for pieces in found} == {"lower"}
    assert {piece for pieces in found for piece in pieces} <= codes.possible_subwords(["lower"])
    assert ("low", "e@@", "r") not in found


def test_everything_that_dropout_can_give_is_listed() -> None:
    codes, generator = BpeCodes(LOW), Random(1)
    words = ["low", "lower", "slow", "x", "err"]
    found = {p for word in words for _ in range(300) for p in codes.sample(word, 0.6, generator)}
    assert found <= codes.possible_subwords(words)
    for piece in codes.possible_subwords(words) - {"er"}:  # “er” ends no “err” without its first r
        assert piece in found, piece


# The two versions, and a vocabulary that not everything is in.


def test_version_0_1_counts_the_end_as_a_symbol() -> None:
    merges = "l o\nlo w\nlow </w>\ne r\n"
    for head in ("", "#version: 0.1\n"):
        codes = BpeCodes(f"{head}{merges}".encode())
        assert cut(codes, "low lower er") == "low low@@ er er"
    assert cut(BpeCodes(f"#version: 0.2\n{merges}".encode()), "low er") == "lo@@ w e@@ r"


def test_what_the_vocabulary_does_not_know_is_cut_smaller() -> None:
    assert cut(BpeCodes(LOW), "lower low") == "lower low"
    known = {"low@@", "er", "lo@@"}
    assert cut(BpeCodes(LOW, known), "lower low") == "low@@ er lo@@ w"
    assert cut(BpeCodes(LOW, known - {"er"}), "lower") == "low@@ e@@ r"
    assert cut(BpeCodes(LOW, ["nothing"]), "lower") == "l@@ o@@ w@@ e@@ r"
    apart = b"l o\nlo w\nlow </w>\n"
    assert cut(BpeCodes(apart, {"lo@@"}), "low") == "lo@@ w"


def test_a_text_may_hold_what_codes_use_themselves() -> None:
    codes = BpeCodes(LOW)
    for line in ("</w>", "a </w> b", "lower</w>", "#version: 0.2", "\u2028 x"):
        assert join_pieces(cut(codes, line).split(" ")) == line
    assert words_of("  a  b\r\n") == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "line 1"),
        (b"#version: 0.2\nl o\nl o w\n", "line 3"),
        (b"l o\n\ne r\n", "line 2"),
        (b"l o\nl\n", "line 2"),
        (b"#version: 0.3\nl o\n", "'0.3'"),
        (b"l o\nl \xff\n", "byte at offset 6"),
    ],
)
def test_a_file_that_holds_no_codes_is_refused(content: bytes, named: str) -> None:
    with pytest.raises(TokenizerError, match=named) as caught:
        BpeCodes(content)
    assert "\n" not in str(caught.value)
