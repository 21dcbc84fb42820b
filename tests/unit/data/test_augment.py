from random import Random

import pytest

from heedful.data.augment import augment_pairs, augmented_sides
from heedful.errors import PluginError
from heedful.settings.registries import AUGMENTATIONS, augmentation_shares

PAIRS = [
    ("the big red dog runs .", "le gros chien rouge court ."),
    (">>fr<< it isn't here", "ce n'est pas ici"),
    ("ok", "d'accord"),
] * 200


def changed(name):
    """Change every pair; list the results."""
    return list(augment_pairs(PAIRS, f"{name}:1", Random(1)))


def test_capitals_and_titles_are_on_both_sides():
    assert changed("capitals")[:2] == [
        ("THE BIG RED DOG RUNS .", "LE GROS CHIEN ROUGE COURT ."),
        (">>fr<< IT ISN'T HERE", "CE N'EST PAS ICI"),
    ]
    assert changed("title")[:2] == [
        ("The Big Red Dog Runs .", "Le Gros Chien Rouge Court ."),
        (">>fr<< It Isn't Here", "Ce N'est Pas Ici"),
    ]


def test_typing_errors_are_in_the_source_alone():
    pairs = changed("typos")
    assert [target for _, target in pairs] == [target for _, target in PAIRS]
    others = [source for (source, _), (old, _) in zip(pairs, PAIRS, strict=True) if source != old]
    assert len(others) > 0.8 * len(PAIRS) and len({*others}) > 50
    assert all(
        abs(len(source) - len(old)) <= 2 for (source, _), (old, _) in zip(pairs, PAIRS, strict=True)
    )


def test_a_long_line_has_more_typing_errors():
    line = "the big red dog " * 100
    ((source, _),) = augment_pairs([(line, line)], "typos:1", Random(1))
    assert 10 < sum(map(str.__ne__, line.split(), source.split())) < 60


@pytest.mark.parametrize("name", ["symbols", "tags"])
def test_what_is_copied_stands_on_both_sides(name):
    copied = set()
    for (source, target), (old_source, old_target) in zip(changed(name), PAIRS, strict=True):
        tag = ">>fr<< " if old_source.startswith(">>") else ""
        assert source.startswith(tag)
        old = old_source.removeprefix(tag)
        around = source.removeprefix(tag).partition(old), target.partition(old_target)
        assert around[0][1] and around[1][1]  # the words are as they were
        assert (around[0][0], around[0][2]) == (around[1][0], around[1][2])
        copied.add(around[0][0] + around[0][2])
    assert len(copied) > 20 and "" not in copied


def test_the_last_mark_is_the_same_on_both_sides():
    for (source, target), (old_source, old_target) in zip(
        changed("punctuation"), PAIRS, strict=True
    ):
        base, other = old_source.rstrip(" ."), old_target.rstrip(" .")
        assert source.startswith(base) and target.startswith(other)
        assert source.removeprefix(base) == target.removeprefix(other)


def test_shares_are_kept_and_the_generator_decides():
    shares = "capitals:0.2 title:0.3"
    first, again, other = (list(augment_pairs(PAIRS * 5, shares, Random(n))) for n in (1, 1, 2))
    assert first == again != other
    capitals = sum(source.removeprefix(">>fr<< ").isupper() for source, _ in first)
    assert 0.16 < capitals / len(first) < 0.24
    plain = sum(pair == old for pair, old in zip(first, PAIRS * 5, strict=True))
    assert 0.45 < plain / len(first) < 0.55
    assert list(augment_pairs(PAIRS, "", Random(1))) == PAIRS


def test_shares_may_add_up_to_one():
    shares = "capitals:0.05 title:0.55 typos:0.3 tags:0.1"  # added in turn, slightly more than 1
    assert sum(augmentation_shares(shares).values()) > 1
    with pytest.raises(ValueError, match="a sum of at most 1"):
        augmentation_shares("capitals:0.5 title:0.51")


def test_sides_that_would_be_empty_stay():
    for name in AUGMENTATIONS:
        for _ in range(20):
            sources, targets = augmented_sides(["."], ["a"], f"{name}:1", Random(3))
            assert sources[0].strip() and targets[0].strip()


@pytest.mark.parametrize("result", [None, "ab", ("a",), ("a", 1), ["a", "b"]])
def test_a_change_that_returns_no_pair_is_named(monkeypatch, result):
    monkeypatch.setitem(AUGMENTATIONS._parts, "mine", lambda source, target, generator: result)
    with pytest.raises(PluginError, match="the augmentation 'mine' must return a pair of texts"):
        list(augment_pairs(PAIRS[:1], "mine:1", Random(1)))
