from heedful.paper.systems.report import (
    cost_rows,
    equal_cost_rows,
    neighbours,
    plain,
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
        *("first", "1,000", "300", "10.0", "3.00e+11", "5.00", "28.0", "27.0 to 29.0"),
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
