"""Search options: their ranges and combinations, and what a recipe fills in."""

from dataclasses import replace

import pytest

from heedful.config.load import load_config
from heedful.errors import ArgumentError, SettingError
from heedful.search.length import LengthLimit, LengthPenalty
from heedful.search.settings import PAPER_SEARCH, Sampling, SearchOptions
from heedful.search.stopping import StoppingPolicy


def resolved(options: SearchOptions) -> tuple[object, ...]:
    """Read what a search reads."""
    ranks = options.size, options.width, options.eos_ranks, options.n_best
    values = options.penalty, options.limit, options.stopping, options.coverage_penalty or 0.0
    return *ranks, *values, options.min_length or 0, options.renormalise or False


def test_without_a_recipe_a_search_is_the_papers() -> None:
    paper = SearchOptions().over(load_config("paper-base").search)
    assert resolved(PAPER_SEARCH) == resolved(paper)
    assert resolved(paper)[:4] == (4, 4, 4, 1)
    assert (paper.penalty, paper.limit) == (LengthPenalty("gnmt", 0.6), LengthLimit(50, True))


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
    filled = SearchOptions().over(recipe)
    assert (filled.beam, filled.min_length, filled.renormalise) == (6, 2, True)
    assert filled.penalty == LengthPenalty("power", 1.0)
    assert filled.limit == LengthLimit(200, relative=False)
    assert filled.stopping == StoppingPolicy("when-beam-finished", "keep")
    options = SearchOptions(
        beam=3,
        length_penalty="none",
        max_length="input+7",
        min_length=0,
        n_best=2,
        no_repeat_ngram=4,
        stop="when-none-can-win",
    )
    assert options.over(recipe) == replace(
        options,
        coverage_penalty=0.0,
        eos_candidates="beam",
        length_limit_policy="keep",
        renormalise=True,
        rules="",
    )
    assert options.over(recipe).limit == LengthLimit(7, relative=True)
    assert options.over(recipe).stopping == StoppingPolicy("when-none-can-win", "keep")


def test_filling_the_options_of_a_line_checks_them_once(monkeypatch) -> None:
    recipe, checks = load_config("tiny").search, []
    monkeypatch.setattr("heedful.search.settings.check_fields", checks.append)
    SearchOptions.from_keywords("translate", PAPER_SEARCH, {}).over(recipe)
    assert len(checks) == 1


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
    assert options.over(recipe).eos_ranks == expected


def test_the_rule_of_ctranslate2_depends_on_the_length_penalty() -> None:
    recipe = load_config("tiny", {"search.stop": "as-ctranslate2"}).search
    for penalty, stop in (("none", "when-none-can-win"), ("power:1", "when-beam-finished")):
        options = SearchOptions(length_penalty=penalty)
        assert options.over(recipe).stopping.stop == stop


@pytest.mark.family("recurrent")
def test_a_coverage_penalty_acts_where_hypotheses_are_compared() -> None:
    families = {"model.encoder": "recurrent", "model.decoder": "recurrent"}
    recipe = load_config("tiny", {**families, "search.coverage_penalty": 0.2}).search
    assert SearchOptions().over(recipe).coverage_penalty == 0.2
    assert SearchOptions(coverage_penalty=0.0).over(recipe).coverage_penalty == 0.0
    for without in (SearchOptions(beam=1), SearchOptions(sample=Sampling())):
        assert without.over(recipe).coverage_penalty == 0.0
    greedy = load_config("tiny", {**families, "search.beam": 1}).search
    asked = SearchOptions(coverage_penalty=0.2)
    with pytest.raises(SettingError, match=r"a beam of 1 \(greedy search\) compares none"):
        asked.over(greedy)


@pytest.mark.family("recurrent")
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "applies only if `model.decoder` is recurrent"),
        (
            {"model.encoder": "recurrent", "model.decoder": "recurrent", "search.beam": 1},
            "applies only if `search.beam` is not 1",
        ),
    ],
)
def test_a_recipe_s_idle_coverage_penalty_is_refused(changes, told) -> None:
    with pytest.raises(SettingError, match=told):
        load_config("tiny", {**changes, "search.coverage_penalty": 0.2})


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"beam": 0}, "beam must be at least 1, but is 0"),
        ({"n_best": 0}, "n-best must be at least 1"),
        ({"diverse_groups": 0}, "diverse-groups must be at least 1"),
        ({"no_repeat_ngram": -1}, "no-repeat-ngram must be at least 0"),
        ({"length_penalty": "1"}, "length penalty"),
        ({"max_length": "-1"}, "length limit"),
        ({"diversity_strength": 0.5}, "there is only one group"),
        (
            {"diversity_strength": -1.0, "diverse_groups": 2},
            "diversity-strength must be a finite number of at least 0",
        ),
        (
            {"diversity_strength": float("nan"), "diverse_groups": 2},
            "diversity-strength must be a finite number of at least 0",
        ),
        ({"coverage_penalty": -0.1}, "coverage-penalty must be a number from 0 to 10, but is -0.1"),
        ({"coverage_penalty": float("nan")}, "coverage-penalty must be a number from 0 to 10"),
        ({"coverage_penalty": 0.2, "beam": 1}, r"a beam of 1 \(greedy search\) compares none"),
        ({"coverage_penalty": 0.2, "sample": Sampling()}, "sampling compares none"),
        ({"stop": "soon"}, "stop must be when-none-can-win or .* but is 'soon'"),
        ({"min_length": -1}, "min-length must be at least 0, but is -1"),
        ({"sample": Sampling(), "beam": 4}, "got a beam"),
        ({"sample": Sampling(), "diverse_groups": 2}, "got diverse-groups"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(wrong, told):
    with pytest.raises(SettingError, match=told):
        SearchOptions(**wrong)


def test_constraints_go_with_a_plain_beam_only():
    SearchOptions(beam=4, n_best=2, no_repeat_ngram=3).check_constraints()
    for options, told in (
        (SearchOptions(sample=Sampling()), "got sampling"),
        (SearchOptions(diverse_groups=2), "got diverse-groups"),
    ):
        with pytest.raises(SettingError, match=told):
            options.check_constraints()


@pytest.mark.parametrize(
    ("options", "width"),
    [
        (SearchOptions(), 4),
        (SearchOptions(beam=1), 1),
        (SearchOptions(beam=2, n_best=3), 3),
        (SearchOptions(diverse_groups=3), 6),
        (SearchOptions(beam=5, diverse_groups=2), 6),
        (SearchOptions(n_best=7, diverse_groups=2), 8),
        (SearchOptions(sample=Sampling(), n_best=3), 3),
    ],
)
def test_the_beam_is_wide_enough_for_what_is_wanted(options, width):
    assert options.over(load_config("paper-base").search).size == width


def test_the_longest_translation_is_a_number_or_text():
    assert SearchOptions(max_length=20) == SearchOptions(max_length="20")
    for wrong in (0, -1, "0"):
        with pytest.raises(SettingError, match="a length limit must be"):
            SearchOptions(max_length=wrong)


HUGE = 10**5000


@pytest.mark.parametrize("name", ["beam", "max_length", "min_length", "no_repeat_ngram"])
def test_numbers_beyond_64_bits_are_refused_without_their_digits(name):
    with pytest.raises(ArgumentError, match=rf"`{name}` of SearchOptions .* of 16,610 bits"):
        SearchOptions(**{name: HUGE})


@pytest.mark.parametrize("temperature", [0.0, -1.0, 1e-320, float("nan"), float("inf")])
def test_a_temperature_without_finite_quotients_is_refused(temperature):
    with pytest.raises(SettingError, match="temperature of sampling must be finite and at least"):
        Sampling(temperature=temperature)


@pytest.mark.parametrize("name", ["length_penalty", "max_length", "stop"])
def test_an_empty_text_is_refused_and_no_default(name):
    with pytest.raises(SettingError, match="but is ''"):
        SearchOptions(**{name: ""})


@pytest.mark.parametrize(
    "text", ["none:", "gnmt:-0", "gnmt:1_0", "gnmt: 0.6", "power:+1", "power:٠.٦"]
)
def test_a_length_penalty_is_written_the_same_way_at_every_door(text):
    with pytest.raises(SettingError, match="length penalty must be"):
        SearchOptions(length_penalty=text)
    with pytest.raises(SettingError, match=r"search\.length_penalty"):
        load_config("tiny", {"search.length_penalty": text})
