"""Which source tokens the phrases of a linearized tree cover."""

from heedful.tasks.parsing.constraints import CLOSE, OPEN, OTHER, WORD, TreeSymbols
from heedful.tasks.parsing.phrases import phrases_of

# 0 end, 1 XX, 2 (A, 3 )A, 4 (B, 5 )B
KINDS, LABELS = (OTHER, WORD, OPEN, CLOSE, OPEN, CLOSE), (-1, -1, 0, 0, 1, 1)
PLAIN, NUMBERED = TreeSymbols(KINDS, LABELS), TreeSymbols(KINDS, LABELS, 8)
PIECES = ("▁the", "▁d", "og", "▁sleep", "s")


def test_phrases_cover_the_tokens_of_their_words():
    target = [2, 4, 1, 1, 5, 1, 3, 0]  # (A (B the dog )B sleeps )A
    assert phrases_of(PLAIN, target, PIECES) == ((1, 4, 0, 3), (0, 6, 0, 5))


def test_numbers_before_words_are_no_words():
    pieces = ("▁\ue000", "▁the", "▁\ue001", "▁d", "og")
    assert phrases_of(NUMBERED, [2, 1, 4, 1, 5, 3], pieces) == ((2, 4, 3, 5), (0, 5, 1, 5))


def test_what_is_no_tree_has_the_phrases_that_are_closed():
    assert phrases_of(PLAIN, [2, 5, 1, 3, 3], PIECES) == ((0, 3, 0, 1),)
    assert phrases_of(PLAIN, [2, 3, 4, 1], PIECES) == ()
    assert phrases_of(PLAIN, [2, 1, 1, 1, 1, 3], PIECES) == ()  # more words than there are
