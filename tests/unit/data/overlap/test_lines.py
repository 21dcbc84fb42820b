import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.overlap.lines import LONGEST, HeldOutLines, Repetition
from heedful.data.overlap.words import grams, normalize_line, words
from tests.support.growth import assert_grows_linearly

# Anagrams have the same hash, and "é" is written in two ways.
WORDS = ("on", "no", "NO", "é", "e\u0301", "a", "b", "c", "日本", "の", ".", "...")
parts = st.lists(st.sampled_from(WORDS), max_size=24)
held_out_texts = st.lists(parts, max_size=6)


def twin(held_out: list[str], lines: list[str]) -> dict[int, Repetition]:
    """Compare every line with every other, by the definition."""
    texts = [*dict.fromkeys(filter(None, map(normalize_line, held_out)))]
    matches = {}
    for place, line in enumerate(lines):
        exact = texts.index(normalize_line(line)) if normalize_line(line) in texts else None
        near, present = [], {*grams(words(line))}
        for number, text in enumerate(texts):
            own, length = {*grams(words(text))}, len([*words(text)])
            share = len(own & present) / len(own) if own else 0
            if number != exact and 8 <= length <= 1000 and share >= 0.9:
                near.append(number)
        if exact is not None or near:
            matches[place] = Repetition(exact, tuple(near))
    return matches


@st.composite
def repeating(draw):
    """Held-out lines, and lines that hold some of them with a few words changed."""
    held_out = draw(held_out_texts)
    lines = draw(st.lists(parts, max_size=4))
    for copied in draw(st.lists(st.sampled_from(held_out or [[]]), max_size=6)):
        line = [*draw(st.lists(st.sampled_from(WORDS), max_size=2)), *copied]
        for _ in range(draw(st.integers(0, 2))):
            line.insert(draw(st.integers(0, len(line))), draw(st.sampled_from(WORDS)))
        lines.append(line)
    return [" ".join(line) for line in held_out], [" ".join(line) for line in lines]


@given(repeating())
def test_it_agrees_with_its_twin(texts):
    held_out, lines = texts
    assert HeldOutLines(held_out).find(lines) == twin(held_out, lines)


@pytest.mark.parametrize("changed", range(3))
@pytest.mark.parametrize("count", [7, 8, 12, 13, 22, 23, 24, 33, 1000, 1001])
def test_nine_in_ten_are_needed(count, changed):
    """A change of the last word loses one 4-gram."""
    line = [f"w{number}" for number in range(count)]
    held_out = " ".join(line)
    repeated = " ".join([*line[: count - changed], *["x"] * changed])
    matches = HeldOutLines([held_out]).find([repeated])
    assert matches == twin([held_out], [repeated])
    if changed:
        is_near = 8 <= count <= 1000 and changed <= (count - 3) // 10
        assert matches == ({0: Repetition(None, (0,))} if is_near else {})


def test_a_sentence_inside_a_longer_one_is_near_and_punctuation_does_not_count():
    index = HeldOutLines(["The big red dog sleeps in the garden.", "short"])
    lines = ["He says: the BIG red dog sleeps, in the garden!", "the short dog", " Short ", ""]
    assert index.find(lines) == {0: Repetition(None, (0,)), 2: Repetition(1, ())}
    assert (index.id_of("short"), index.id_of("long")) == (1, None)


def test_letters_of_scripts_without_spaces_are_words():
    index = HeldOutLines(["今日は天気がいい", "今日は天気が"])
    assert index.find(["昨日も今日は天気がいいです", "今日は天気が。"]) == {
        0: Repetition(None, (0,))
    }


def test_very_long_lines_are_compared_as_a_whole():
    long = "word " * (LONGEST // 5 + 1)
    other = "a b c d e f g h"
    index = HeldOutLines([long, other])
    assert index.find([long.upper(), f"{long} {other}", other]) == {
        0: Repetition(0, ()),
        2: Repetition(1, ()),
    }


def test_empty_indexes_and_lines_find_nothing():
    assert HeldOutLines([]).find(["a", ""]) == {}
    assert HeldOutLines(["", " "]).find(["", "a b c d e f g h"]) == {}
    assert HeldOutLines(["a"]).find([]) == {}
    assert HeldOutLines(["..."]).find(["...", ",", "…"]) == {0: Repetition(0, ())}


def text(size: int) -> list[str]:
    return [
        " ".join(f"w{(number * 7 + step) % 97}" for step in range(12)) for number in range(size)
    ]


def test_time_grows_with_the_text_and_memory_does_not():
    index = HeldOutLines(text(300))
    assert_grows_linearly(lambda size: index.find(text(size)), 100)
    assert_grows_linearly(lambda size: HeldOutLines(text(size)), 100)
    peaks = []
    lines = text(4_000)
    for size in (500, 4_000):
        tracemalloc.start()
        for begin in range(0, size, 250):
            index.find(lines[begin : begin + 250])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]
