"""How the web page joins subwords to words, in a real browser."""

from pathlib import Path

import pytest

import heedful.serve.page

CODE = Path(heedful.serve.page.__file__).parent


@pytest.fixture(scope="module")
def words(browser):
    """Call a function of `words.js`."""
    page = browser.new_page()
    page.add_script_tag(path=CODE / "words.js")
    yield lambda name, *given: page.evaluate(f"given => heedful.words.{name}(...given)", given)
    page.close()


def split(words, text, *pieces):
    tokens = [{"piece": piece, "probability": chance} for piece, chance in pieces]
    return [
        (word["text"], word["probability"] and round(word["probability"], 3), word["place"])
        for word in words("split", text, tokens)
    ]


def test_a_word_is_as_probable_as_all_its_pieces(words):
    pieces = ("▁Das", 0.9), ("▁Ti", 0.5), ("er", 0.5), (".", 0.8)
    assert split(words, "Das Tier.", *pieces) == [("Das", 0.9, 0), ("Tier.", 0.2, 1)]


def test_other_ways_to_cut_words_are_known(words):
    joined = ("ha@@", 0.5), ("us", 0.5), ("tür", 1.0)
    assert split(words, "haus tür", *joined) == [("haus", 0.25, 0), ("tür", 1.0, 1)]
    spaced = ("ĠA", 0.5), ("Ġb", 0.25), ("c", 1.0)
    assert split(words, "A bc", *spaced) == [("A", 0.5, 0), ("bc", 0.25, 1)]
    letters = [(letter, 0.5) for letter in "▁ab▁c"]
    assert split(words, "ab c", *letters) == [("ab", 0.25, 0), ("c", 0.5, 1)]


def test_pieces_that_are_not_in_the_text_share_what_lies_between(words):
    pieces = ("▁so", 0.9), ("<0xF0>", 0.5), ("<0x9F>", 0.5), ("▁it", 0.8)
    assert split(words, "so 🙂 it", *pieces) == [("so", 0.9, 0), ("🙂", 0.25, 1), ("it", 0.8, 2)]
    replaced = ("▁in", 0.9), ("<unk>", 0.1)
    assert split(words, "in Łódź", *replaced) == [("in", 0.9, 0), ("Łódź", 0.1, 1)]


def test_where_no_spaces_are_written_a_piece_is_a_word(words):
    pieces = ("▁我们", 0.9), ("学习", 0.5), ("。", 1.0)
    found = split(words, "我们学习。", *pieces)
    assert found == [("我们", 0.9, 0), ("学习", 0.5, 0), ("。", 1.0, 0)]


def test_without_probabilities_words_have_none(words):
    assert split(words, "a b", ("▁a", None), ("▁b", None)) == [("a", None, 0), ("b", None, 1)]
    assert split(words, "a b") == [("a", None, 0), ("b", None, 1)]
    assert split(words, "") == []


@pytest.mark.parametrize(
    ("probability", "level"), [(1, 0), (0.9, 0), (0.89, 1), (0.6, 1), (0.3, 2), (0.29, 3), (0, 3)]
)
def test_doubt_has_four_levels(words, probability, level):
    assert words("level", probability) == level


def test_what_differs_is_found(words):
    found = words("differing", "the cat sat here", "a cat sat there")
    assert [word["text"] for word in found if not word["same"]] == ["a", "there"]
    assert [word["same"] for word in words("differing", "a b c", "b c a")] == [True, True, False]


def test_numbers_are_short_and_honest(words):
    assert words("percent", 0.734) == "73\u202f%"
    assert words("percent", 0.004) == "0.4\u202f%"
    assert words("signed", -0.327) == "\u22120.33"
