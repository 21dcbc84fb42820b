import pytest

from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.experiments.page import ScoreDifference
from heedful.experiments.system import count_parameters
from heedful.paper.table2 import (
    COMMON,
    ENSEMBLES,
    PUBLISHED,
    RECIPE,
    SYSTEMS,
    Table2,
    _choose,
)


def test_published_costs_follow_from_the_papers_formula():
    filled = 0
    for one in PUBLISHED:
        for side in (0, 1):
            printed, again = one.printed[side], one.recomputed(side)
            assert (printed is None) == (again is None)
            if printed is not None and again is not None:
                assert f"{again:.1e}" == f"{printed:.1e}" or f"{again:.2e}" == "2.05e+19"
                filled += 1
    assert filled == 16


@pytest.mark.family("bytenet", "convs2s", "experts", "recurrent")
def test_siblings_have_equally_many_weights():
    found = {}
    for system in SYSTEMS:
        config = load_config(RECIPE, (*COMMON, "data.vocabulary_size=4000", *system.settings))
        found[system.name] = count_parameters(config)
    big = found.pop("big")
    assert max(found.values()) < 1.06 * min(found.values())
    assert 3 < big / found["base"] < 4


def test_what_learns_late_needs_more_steps():
    fewest = {system.name: system.fewest for system in (*SYSTEMS, *ENSEMBLES)}
    late = {name for name, steps in fewest.items() if steps == 600}
    assert {name.partition("-")[0] for name in late} == {"deep", "gnmt"}
    assert {fewest[name] for name in fewest.keys() - late} == {10}


def test_an_ensemble_is_three_seeds_of_a_system():
    (together,) = (one for one in ENSEMBLES if one.name == "gnmt-ensemble")
    assert together.members == ("gnmt", "gnmt-2", "gnmt-3")
    (second,) = (one for one in ENSEMBLES if one.name == "gnmt-2")
    (first,) = (one for one in SYSTEMS if one.name == "gnmt")
    assert second.settings == (*first.settings, "train.seed=2")


def test_the_page_has_published_and_own_rows_and_a_picture(make, tmp_path):
    table = Table2((make("first"), make("together", curve=())), (), "train.en:7")
    page = table.to_markdown()
    assert "| ByteNet | 23.75 |" in page
    assert "| first | 0.0 M |" in page
    assert "train.en:7" in page
    assert table.to_dict()["here"][0]["name"] == "first"
    assert len(table.published_rows) == 11
    table.draw(tmp_path / "table2.svg")
    assert "first, 30.0" in (tmp_path / "table2.svg").read_text("utf-8")


def test_systems_are_chosen_by_name():
    assert [one.name for one in _choose(("base", "gnmt"))] == ["gnmt", "base"]
    assert _choose(()) == SYSTEMS
    with pytest.raises(SettingError, match=r"--system must be one of bytenet, .* but is 'none'"):
        _choose(("none",))
    with pytest.raises(SettingError, match="give --system gnmt too"):
        _choose(("gnmt-rl",))


def test_seeds_are_chosen_alone_and_an_ensemble_with_its_seeds():
    known = (*SYSTEMS, *ENSEMBLES)
    assert [system.name for system in _choose(("base-2",), known)] == ["base-2"]
    seeds = ("base", "base-2", "base-3")
    chosen = _choose((*seeds, "base-ensemble"), known)
    assert [system.name for system in chosen] == [*seeds, "base-ensemble"]
    with pytest.raises(SettingError, match="give --system base-2 too"):
        _choose(("base", "base-ensemble"), known)


def test_the_page_says_what_was_left_out_and_what_has_learned_nothing(make):
    systems = (make("weak", title="ByteNet", bleu=0.2), make("able", bleu=30.0))
    reason = "GNMT is left out: its share of 3.0 minutes has fewer than 10 steps for it."
    page = Table2(systems, (), "train.en:7", (reason,)).to_markdown()
    assert reason in page
    assert "ByteNet has learned nothing useful in its training steps." in page
    assert "able has learned nothing" not in page
    assert "↑ marks systems that were still learning" in page
    steady = Table2((make("together", curve=()),), (), "train.en:7").reservations
    assert not any("↑" in sentence for sentence in steady)


def test_seeds_are_explained_where_there_are_some(make):
    difference = ScoreDifference("able", "weak", 2.0, (1.0, 3.0), "BLEU")
    systems = (make("able", bleu=30.0), make("weak", bleu=28.0))
    alone = Table2(systems, (difference,), "train.en:7").to_markdown()
    assert "seeds" not in alone.split("nats of attention")[0]
    seeds = (*systems, make("able-2", bleu=31.5))
    page = Table2(seeds, (difference,), "train.en:7").to_markdown()
    assert "range over seeds, which differ by up to 1.5 BLEU here" in page
    assert "its first seed is compared" in page
    assert "| able | 30.8" in page
