from heedful.tokenization.characters import (
    CharacterLines,
    Losses,
    coverage_for,
    lines_to_lose,
    show_characters,
)

LINES = ["abc"] * 10 + ["abx"] * 2 + ["abyz", "abw"]


def test_the_rarest_characters_come_first_and_those_of_one_line_together():
    counts = CharacterLines(LINES)
    assert counts.total == 14
    assert counts.rarest(2) == ["y", "z", "w", "x"]
    assert counts.rarest(1) == ["y", "z", "w"]
    assert counts.costliest("wyz") == [(13, "yz"), (14, "w")]


def test_losses_count_lines_once():
    losses = Losses.of(["y", "z", "w", "x"], LINES)
    assert losses.lines == [1, 1, 2, 4]
    assert [losses.within(lines) for lines in range(5)] == [0, 2, 3, 3, 4]
    assert [losses.cost(number) for number in range(5)] == [0, 1, 1, 2, 4]


def test_a_coverage_gives_up_at_least_the_lines_it_was_computed_for():
    for total in (7, 802, 3999, 123_456, 10_000_000):
        for lines in (1, 2, 3, 50):
            if lines < total // 3:
                coverage = coverage_for(lines, total)
                assert lines <= lines_to_lose(coverage, total) <= max(lines + 1, 1.3 * lines)


def test_nothing_is_lost_with_full_coverage():
    assert lines_to_lose(1.0, 10**9) == 0


def test_invisible_characters_are_shown_by_number():
    assert show_characters("\u200ba\u3000") == "U+200B a U+3000"
    assert show_characters("abcdefgh") == "a b c d e …"
