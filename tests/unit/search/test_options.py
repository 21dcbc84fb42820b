"""Search options and their combinations."""

import pytest

from heedful.errors import SettingError
from heedful.search.options import Sampling, SearchOptions


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"beam": 0}, "beam must be at least 1, but is 0"),
        ({"n_best": 0}, "n-best must be at least 1"),
        ({"diverse_groups": 0}, "diverse-groups must be at least 1"),
        ({"no_repeat_ngram": -1}, "no-repeat-ngram must be at least 0"),
        ({"length_penalty": "1"}, "length penalty"),
        ({"max_length": "-1"}, "length limit"),
        ({"diversity_strength": 0.5}, "there is one group"),
        (
            {"diversity_strength": -1.0, "diverse_groups": 2},
            "diversity-strength must be a number of at least 0",
        ),
        (
            {"diversity_strength": float("nan"), "diverse_groups": 2},
            "diversity-strength must be a number of at least 0",
        ),
        ({"coverage_penalty": -0.1}, "coverage-penalty must be a number from 0 to 10, but is -0.1"),
        ({"coverage_penalty": float("nan")}, "coverage-penalty must be a number from 0 to 10"),
        ({"coverage_penalty": 0.2, "beam": 1}, r"a beam of 1 \(greedy search\) came with it"),
        ({"coverage_penalty": 0.2, "sample": Sampling()}, "sampling came with it"),
        ({"stop": "soon"}, "stop must be when-none-can-win or .* but is 'soon'"),
        ({"min_length": -1}, "min-length must be at least 0, but is -1"),
        ({"sample": Sampling(), "beam": 4}, "a beam came"),
        ({"sample": Sampling(), "diverse_groups": 2}, "diverse-groups came"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(wrong, told):
    with pytest.raises(SettingError, match=told):
        SearchOptions(**wrong)


def test_constraints_go_with_a_plain_beam_only():
    SearchOptions(beam=4, n_best=2, no_repeat_ngram=3).check_constraints()
    for options, told in (
        (SearchOptions(sample=Sampling()), "sampling came"),
        (SearchOptions(diverse_groups=2), "diverse-groups came"),
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
    assert options.width(4) == width


def test_the_longest_translation_is_a_number_or_text():
    assert SearchOptions(max_length=20) == SearchOptions(max_length="20")
    for wrong in (0, -1, "0"):
        with pytest.raises(SettingError, match="a length limit must be"):
            SearchOptions(max_length=wrong)
