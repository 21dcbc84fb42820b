import pytest

from heedful.experiments.measured import CurvePoint
from heedful.experiments.report import (
    cost_rows,
    equal_cost_rows,
    neighbours,
    plain,
    still_learns,
)


def test_systems_are_compared_at_the_least_cost_that_all_have_spent(make):
    first, second = make("first"), make("second")
    cheap = make("cheap", curve=tuple(point for point in first.curve if point.step < 300))
    rows = equal_cost_rows([first, second, cheap, make("together", curve=())])
    assert rows[0] == ("system", "BLEU after 6.7 minutes", "after 2.0e+11 operations")
    assert [row[0] for row in rows[1:]] == ["first", "second", "cheap"]
    assert rows[1][1:] == ("20.0", "20.0")


def test_the_table_has_every_number(make):
    rows = cost_rows([make("first"), make("together", curve=(), perplexity=None)])
    assert rows[1] == (
        *("first", "1,000", "300", "10.0", "3.00e+11", "5.00", "28.0↑", "27.0 to 29.0"),
        *("50.0", "5", "90"),
    )
    assert rows[2][5] == ""
    assert plain([make("first")])[0]["curve"][0]["step"] == 100


def test_published_scores_stand_beside_ours(make):
    systems = [make("first"), make("second", search_tokens_per_second=None)]
    head, *rows = cost_rows(systems, ("published BLEU", {"second": "27.3"}))
    column = head.index("published BLEU")
    assert head[column + 1] == "BLEU"
    assert [row[column] for row in rows] == ["", "27.3"]
    assert rows[1][-1] == ""  # measured before tokens were counted


def test_neighbours_are_compared_on_what_they_wrote(make, corpus, tmp_path):
    references = corpus.lines("test", "fr")
    (tmp_path / "output").mkdir()
    for name, right in (("good", 30), ("bad", 10)):
        texts = [*references[:right], *["non"] * (30 - right)]
        (tmp_path / "output" / f"{name}.test.txt").write_text("\n".join(texts) + "\n", "utf-8")
    systems = [make("bad", bleu=30.0), make("good", bleu=90.0)]
    (found,) = neighbours(systems, corpus, tmp_path)
    assert (found.better, found.worse) == ("good", "bad")
    assert found.difference > 20
    assert found.interval[0] > 0


def test_who_has_learnt_nothing_is_compared_with_nobody(make, corpus, tmp_path):
    (tmp_path / "output").mkdir()
    for name in ("able", "weak", "weaker"):
        (tmp_path / "output" / f"{name}.test.txt").write_text("rien\n" * 30, "utf-8")
    systems = [make("able", bleu=1.0), make("weak", bleu=0.99), make("weaker", bleu=0.1)]
    assert neighbours(systems, corpus, tmp_path) == []
    again = [*systems, make("weak", title="Able too", bleu=12.0)]
    (only,) = neighbours(again, corpus, tmp_path)
    assert (only.better, only.worse) == ("Able too", "able")


@pytest.mark.parametrize(
    ("bleus", "rises"),
    [
        ((5.0, 7.5, 9.0, 9.0), True),
        ((9.0, 20.0, 20.5, 20.9), False),
        ((20.0, 20.0, 20.0, 21.5), True),
        ((5.0, 9.0, 8.0, 7.0), False),
    ],
)
def test_what_rises_in_the_last_quarter_still_learns(make, bleus, rises):
    steps = (500, 700, 999, 1000)  # the last validation follows one that is hardly earlier
    curve = tuple(
        CurvePoint(step, float(step), 1e9 * step, 5.0, bleu)
        for step, bleu in zip(steps, bleus, strict=True)
    )
    system = make("system", curve=curve, bleu=9.5)
    assert still_learns(system) is rises
    assert ("9.5↑" in cost_rows([system])[1]) is rises
    assert not still_learns(make("together", curve=()))
