import pytest

from heedful.experiments.measured import CurvePoint
from heedful.experiments.page import ScoreDifference
from heedful.experiments.report import (
    all_differences,
    cost_rows,
    difference_rows,
    plain,
    seed_spread,
    still_learns,
    training_rows,
)


def test_the_table_has_every_number(make):
    systems = [make("first"), make("together", curve=(), perplexity=None)]
    rows = cost_rows(systems)
    assert rows[0] == ("system", "BLEU", "perplexity", "operations", "valid. at 3.0e+11")
    assert rows[1] == ("first", "28.0↑ ± 1.0", "5.0", "3.0e+11", "30.0")
    assert rows[2] == ("together", "28.0 ± 1.0", "", "3.0e+11", "")
    assert plain(systems)[0]["curve"][0]["step"] == 100


def test_every_training_has_a_row_with_the_use_of_its_attention(make):
    use = {"nats_of_uniform": 1.234}
    rows = training_rows([make("gnmt"), make("gnmt-2", attention=use)])
    numbers = ("0.0 M", "300", "10.0", "28.0", "1.0", "50.0")
    assert rows[1:] == [("gnmt", *numbers, ""), ("gnmt-2", *numbers, "1.23")]


def test_systems_are_compared_at_the_operations_that_all_have_spent(make):
    first = make("first")
    cheap = make("cheap", curve=tuple(point for point in first.curve if point.step < 300))
    rows = cost_rows([first, make("second"), cheap])
    assert rows[0][-1] == "valid. at 2.0e+11"
    assert [row[-1] for row in rows[1:]] == ["20.0", "20.0", "20.0"]


def test_unknown_operations_are_not_shown(make):
    first = make("first")
    rows = cost_rows([first, make("reward", flops=0.0)])
    assert rows[0][-1] == "valid. at 3.0e+11"
    assert rows[1][-2:] == ("3.0e+11", "30.0")
    assert rows[2][-2:] == ("", "")


def test_seeds_share_a_row_with_their_spread(make):
    seeds = [make("gnmt", bleu=20.0), make("gnmt-2", bleu=23.0), make("gnmt-3", bleu=20.0)]
    systems = [*seeds, make("gnmt-ensemble", bleu=25.0)]
    rows = cost_rows(systems)
    assert [row[0] for row in rows[1:]] == ["gnmt", "gnmt-ensemble"]
    assert [row[1] for row in rows[1:]] == ["21.0↑ (20.0 to 23.0)", "25.0↑ ± 1.0"]
    assert seed_spread(systems) == 3.0
    assert seed_spread(systems[2:]) == 0.0


def test_published_scores_stand_beside_ours(make):
    systems = [make("first"), make("second")]
    head, *rows = cost_rows(systems, ("published BLEU", {"second": "27.3"}))
    column = head.index("published BLEU")
    assert head[column + 1] == "BLEU"
    assert [row[column] for row in rows] == ["", "27.3"]


def test_systems_are_compared_on_what_they_wrote(make, corpus, tmp_path):
    references = corpus.lines("test", "fr")
    (tmp_path / "output").mkdir()
    for name, right in (("good", 30), ("fair", 20), ("bad", 10)):
        texts = [*references[:right], *["non"] * (30 - right)]
        (tmp_path / "output" / f"{name}.test.txt").write_text("\n".join(texts) + "\n", "utf-8")
    bleus = {"bad": 30.0, "good": 90.0, "fair": 60.0, "good-2": 91.0}
    systems = [make(name, bleu=bleu) for name, bleu in bleus.items()]
    found = all_differences(systems, corpus, tmp_path)
    pairs = [(pair.better, pair.worse) for pair in found]
    assert pairs == [("good", "fair"), ("good", "bad"), ("fair", "bad")]
    assert found[1].difference > 20 and found[1].interval[0] > 0


def test_who_has_learned_nothing_is_compared_with_nobody(make, corpus, tmp_path):
    (tmp_path / "output").mkdir()
    for name in ("able", "weak", "weaker"):
        (tmp_path / "output" / f"{name}.test.txt").write_text("rien\n" * 30, "utf-8")
    systems = [make("able", bleu=1.0), make("weak", bleu=0.99), make("weaker", bleu=0.1)]
    assert all_differences(systems, corpus, tmp_path) == []


def test_differences_are_half_a_matrix_and_sure_ones_are_marked():
    differences = [
        ScoreDifference("A", "B", 2.0, (1.0, 3.0), "BLEU"),
        ScoreDifference("A", "C", 5.0, (3.0, 7.0), "BLEU"),
        ScoreDifference("B", "C", 3.0, (-0.1, 6.0), "BLEU"),
    ]
    assert difference_rows(differences) == [
        ("", "1", "2"),
        ("1 A", "", ""),
        ("2 B", "-2.0*", ""),
        ("3 C", "-5.0*", "-3.0"),
    ]


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
    assert still_learns([system]) is rises
    assert cost_rows([system])[1][1].startswith("9.5↑") is rises
    assert not still_learns([make("together", curve=())])


def test_seeds_still_learn_if_they_rise_in_the_mean(make):
    def rising(last):
        points = ((750, 20.0), (1000, last))
        return make(
            "system", curve=tuple(CurvePoint(n, float(n), 1e9 * n, 5.0, bleu) for n, bleu in points)
        )

    assert still_learns([rising(20.0), rising(22.1)])
    assert not still_learns([rising(20.0), rising(21.9)])
