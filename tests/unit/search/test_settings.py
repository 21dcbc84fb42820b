"""Settings of a search, resolved from a recipe and the options of a caller."""

import pytest

from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.search.length import LengthLimit, LengthPenalty
from heedful.search.options import Sampling, SearchOptions
from heedful.search.settings import PAPER_SEARCH, SearchSettings
from heedful.search.stopping import StoppingPolicy


def test_the_papers_recipe_gives_the_papers_search() -> None:
    assert SearchSettings.of(load_config("paper-base").search) == PAPER_SEARCH


def test_options_go_over_the_recipe_and_leave_the_rest() -> None:
    settings = {
        "search.beam": 6,
        "search.length_penalty": "power:1.0",
        "search.max_length": "200",
        "search.min_length": 2,
        "search.stop": "when-beam-finished",
        "search.length_limit_policy": "keep",
        "search.renormalise": True,
    }
    recipe = load_config("tiny", settings).search
    found = SearchSettings.of(recipe)
    assert found == SearchSettings(
        beam=6,
        penalty=LengthPenalty("power", 1.0),
        limit=LengthLimit(200, relative=False),
        stopping=StoppingPolicy("when-beam-finished", "keep"),
        min_length=2,
        renormalise=True,
    )
    options = SearchOptions(
        beam=3,
        length_penalty="none",
        max_length="input+7",
        min_length=0,
        n_best=2,
        no_repeat_ngram=4,
        stop="when-none-can-win",
    )
    assert SearchSettings.of(recipe, options) == SearchSettings(
        beam=3,
        n_best=2,
        penalty=LengthPenalty("none"),
        limit=LengthLimit(7, relative=True),
        stopping=StoppingPolicy("when-none-can-win", "keep"),
        no_repeat_ngram=4,
        renormalise=True,
    )


@pytest.mark.parametrize(
    ("among", "options", "expected"),
    [
        ("beam", SearchOptions(beam=4), 4),
        ("twice", SearchOptions(beam=4), 8),
        ("beam", SearchOptions(beam=6, diverse_groups=3), 2),
        ("twice", SearchOptions(beam=6, diverse_groups=3), 4),
        ("twice", SearchOptions(sample=Sampling(), n_best=3), 6),
    ],
)
def test_candidates_among_which_an_end_counts_are_a_number(
    among: str, options: SearchOptions, expected: int
) -> None:
    recipe = load_config("tiny", {"search.eos_candidates": among}).search
    assert SearchSettings.of(recipe, options).eos_candidates == expected


def test_the_rule_of_ctranslate2_depends_on_the_length_penalty() -> None:
    recipe = load_config("tiny", {"search.stop": "as-ctranslate2"}).search
    for penalty, stop in (("none", "when-none-can-win"), ("power:1", "when-beam-finished")):
        options = SearchOptions(length_penalty=penalty)
        assert SearchSettings.of(recipe, options).stopping.stop == stop


@pytest.mark.family("recurrent")
def test_a_coverage_penalty_acts_where_hypotheses_are_compared() -> None:
    families = {"model.encoder": "recurrent", "model.decoder": "recurrent"}
    recipe = load_config("tiny", {**families, "search.coverage_penalty": 0.2}).search
    assert SearchSettings.of(recipe).coverage_penalty == 0.2
    assert SearchSettings.of(recipe, SearchOptions(coverage_penalty=0.0)).coverage_penalty == 0.0
    for without in (SearchOptions(beam=1), SearchOptions(sample=Sampling())):
        assert SearchSettings.of(recipe, without).coverage_penalty == 0.0
    greedy = load_config("tiny", {**families, "search.beam": 1}).search
    asked = SearchOptions(coverage_penalty=0.2)
    with pytest.raises(SettingError, match=r"a beam of 1 \(greedy search\) came with it"):
        SearchSettings.of(greedy, asked)


@pytest.mark.family("recurrent")
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "acts only if `model.decoder` is recurrent"),
        (
            {"model.encoder": "recurrent", "model.decoder": "recurrent", "search.beam": 1},
            "acts only if `search.beam` is not 1",
        ),
    ],
)
def test_a_recipe_s_idle_coverage_penalty_is_refused(changes, told) -> None:
    with pytest.raises(SettingError, match=told):
        load_config("tiny", {**changes, "search.coverage_penalty": 0.2})
