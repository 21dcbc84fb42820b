import pytest

from heedful.data.overlap.leaks import HeldOutPairs, Leaks

HELD_OUT = HeldOutPairs(
    [">>fr<< The dog sleeps.", "the cat", "one two three four five six seven eight"],
    ["Le chien dort.", "le chat", "un deux trois quatre cinq six sept huit"],
    [1, 4, 1205],
)


def counted(*pairs, corpus="", held_out=HELD_OUT):
    """Count the pairs in two parts."""
    leaks = Leaks(held_out, corpus)
    for begin, part in ((1, pairs[:2]), (3, pairs[2:])):
        sources, targets = [source for source, _ in part], [target for _, target in part]
        leaks.count(sources, targets, range(begin, begin + len(part)))
    return leaks


def test_each_kind_is_counted_and_named_by_line():
    leaks = counted(
        ("the DOG  sleeps.", "x"),
        ("the dog", "y"),
        (">>de<< the cat", "LE CHAT"),
        ("a", "Oh, un deux trois quatre cinq six sept huit!"),
        ("le chat", "the cat"),  # the other side
        ("the cat", "Le chien dort."),  # both sides, of two pairs
        corpus="europarl",
    )
    assert (leaks.exact, leaks.both, leaks.near, leaks.repeated) == (3, 1, 1, 3)
    assert leaks.note() == (
        "warning: the training text of europarl repeats 3 of 3 validation pairs: 3 training pairs "
        "have a line that equals a validation line (1 of them on both sides) and 1 training pair "
        "has at least 90% of the word 4-grams of a validation line. Validation scores can be too "
        "high. Examples (training line = validation line, with ~ for a near repetition): 1 = 1, "
        "3 = 4, 6 = 4, 4 ~ 1,205. To drop such pairs, name the validation files with --exclude, or "
        "validate with other text."
    )


def test_nothing_is_said_where_nothing_is_repeated():
    assert counted(("the dog", "le chien"), ("", "")).note() == ""


def test_only_what_there_is_is_said():
    near = counted(("one two three four five six seven eight nine", "x")).note()
    assert "identical" not in near and "1 training pair has at least" in near
    assert ": 1 ~ 1,205." in near
    exact = counted(("the cat", "x")).note()
    assert "4-grams" not in exact and "both" not in exact and ": 1 = 4." in exact


def test_a_repeated_held_out_line_concerns_each_of_its_pairs():
    held_out = HeldOutPairs(["a", "a", "b"], ["x", "y", "z"], [7, 8, 9])
    leaks = counted(("A", "no"), ("a", "y"), held_out=held_out)
    assert (leaks.exact, leaks.both, leaks.repeated) == (2, 1, 2)
    assert ": 1 = 7, 2 = 7." in leaks.note()


def test_pairs_have_two_sides_and_a_line():
    with pytest.raises(ValueError, match="must have a source, a target and a line"):
        HeldOutPairs(["a"], [], [1])
    changed = HELD_OUT.changed(str.upper)
    assert changed.targets[1] == "LE CHAT" and changed.lines == HELD_OUT.lines
