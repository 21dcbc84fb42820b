from dataclasses import replace

import pytest

from heedful.config.load import load_config
from heedful.paper.table3 import COMMON, PUBLISHED, RECIPE, SYSTEMS, Table3, scale_recipe


def test_every_row_is_scaled_by_one_rule():
    base = dict(setting.split("=") for setting in scale_recipe("base"))
    assert base == {
        "model.d_model": "128",
        "model.d_ff": "512",
        "model.d_k": "16",
        "model.d_v": "16",
        "model.encoder_layers": "3",
        "model.decoder_layers": "3",
        "model.heads": "8",
        "model.dropout": "0.1",
        "model.positions": "interleaved",
        "train.label_smoothing": "0.1",
    }
    for row in PUBLISHED[1:-1]:
        own = dict(setting.split("=") for setting in scale_recipe(row.name))
        assert own != base, row
        load_config(RECIPE, (*COMMON, *scale_recipe(row.name)))
    assert [system.times for system in SYSTEMS if system.name == "big"] == [3]


def test_what_exceeds_the_noise_is_marked(make, tmp_path):
    systems = [
        make(row.name, title=row.title, perplexity=row.perplexity, valid_bleu=row.bleu)
        for row in PUBLISHED
    ]
    systems += [
        make("base-2", perplexity=4.95, valid_bleu=25.7),
        make("base-3", perplexity=4.90, valid_bleu=25.9),
    ]
    table = Table3(tuple(systems), "train.en:7")
    assert table.correlations == pytest.approx((1.0, 1.0), abs=1e-3)
    rows = {row[0]: row for row in table.rows}
    assert rows["base, 3 seeds"][2:] == ("4.92 ± 0.03", "4.92", "25.8↑ ± 0.1", "25.8")
    assert rows["(C) 2 layers"][2:] == ("6.11*", "6.11", "23.7*↑", "23.7")
    assert "↑ marks systems that were still learning" in table.verdict
    others = [row for row in rows.values() if row[0] not in ("row", "base, 3 seeds")]
    apart = sum("*" in row[2] + row[4] for row in others)
    assert f"{apart} of {len(PUBLISHED) - 1} rows have stars." in table.verdict
    assert [row[0] for row in table.details] == ["row", *(one.title for one in systems)]
    assert "(C) 2 layers" in table.conclusions[1]
    some = Table3(tuple(one for one in systems if one.name != "big"), "train.en:7")
    assert some.conclusions[0] == "Not trained: big."
    assert len(some.rows) == len(table.rows) - 1
    assert "(E) learned positions" not in table.conclusions[1]
    assert "| base, 3 seeds |" in table.to_markdown()
    correlations = table.to_dict()["correlations"]
    assert correlations == dict(zip(("perplexity", "bleu"), table.correlations, strict=True))
    odd = [
        replace(one, perplexity=99.0, valid_bleu=1.0) if one.name == "big" else one
        for one in systems
    ]
    changed = Table3(tuple(odd), "train.en:7")
    said = changed.conclusions[2]
    assert "+1.00 for perplexity" in table.verdict
    assert "+1.00 for perplexity" not in changed.verdict
    assert "rank correlations are +1.00 and +1.00." in said
    assert (
        f"the table has {2 * len(PUBLISHED) - 2} numbers besides the base row."
        in table.conclusions[0]
    )
    table.draw(tmp_path / "table3.svg")
    assert "(C) 2 layers" in (tmp_path / "table3.svg").read_text("utf-8")


def made_up(make, **bleu):
    """The table of some BLEU by row, else the published ones."""
    systems = [
        make(row.name, title=row.title, perplexity=row.perplexity, valid_bleu=row.bleu)
        for row in PUBLISHED
    ]
    systems += [
        make("base-2", perplexity=4.95, valid_bleu=25.7),
        make("base-3", perplexity=4.90, valid_bleu=25.9),
    ]
    changed = [replace(one, valid_bleu=bleu.get(one.name, one.valid_bleu)) for one in systems]
    return Table3(tuple(changed), "train.en:7")


def test_a_row_that_has_learned_nothing_is_compared_with_none(make):
    table = made_up(make, big=0.4)
    assert "Big has learned nothing useful in its training steps." in table.conclusions
    (row,) = (row for row in table.rows if row[0] == "big")
    assert (row[2], row[4]) == ("4.33", "0.4↑")  # without a star
    (beyond,) = (said for said in table.conclusions if said.startswith("Rows with stars"))
    assert "big" not in beyond
    assert table.correlations == pytest.approx((1.0, 1.0), abs=1e-3)  # of the others


def test_the_base_row_has_the_means_of_its_seeds(make):
    scores = (("base", 5.0, 25.0), ("base-2", 4.0, 26.0), ("base-3", 4.5, 27.0), ("big", 4.4, 26.5))
    systems = [
        make(name, perplexity=perplexity, valid_bleu=bleu, curve=())
        for name, perplexity, bleu in scores
    ]
    table = Table3(tuple(systems), "train.en:7")
    _, base = table.pairs[0]
    assert (base.perplexity, base.valid_bleu) == (4.5, 26.0)
    assert [row[4] for row in table.rows[1:]] == ["26.0 ± 1.0", "26.5"]
    assert "↑" not in table.verdict
    assert table.systems[0].valid_bleu == 25.0


def test_a_table_without_the_first_seed_of_the_base_row_has_the_other_rows(make):
    systems = [make(name, title=name) for name in ("base-2", "base-3", "big")]
    table = Table3(tuple(systems), "train.en:7")
    assert [row[0] for row in table.rows] == ["row", "big"]


def test_without_a_base_row_nothing_is_compared(make):
    table = made_up(make, **{"base-3": 0.9})
    assert table.conclusions == ["Base-3 has learned nothing useful in its training steps."]
    assert table.verdict.startswith("No rows are compared, because a training run of the base row")
    assert table.correlations == (None, None)
    assert not any("*" in cell for row in table.rows for cell in row)
    assert "No rows are compared" in table.to_markdown()
