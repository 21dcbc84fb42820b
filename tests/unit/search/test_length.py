import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import SettingError
from heedful.search.length import LengthLimit, LengthPenalty


def test_the_papers_penalty_is_that_of_wu_et_al():
    penalty = LengthPenalty.parse("gnmt:0.6")
    assert penalty.divisor(1) == pytest.approx(1.0)
    assert penalty.divisor(7) == pytest.approx((12 / 6) ** 0.6)


def test_the_same_alpha_means_something_else_as_a_power():
    assert LengthPenalty.parse("power:0.6").divisor(7) == pytest.approx(7**0.6)
    assert LengthPenalty.parse("none").divisor(7) == 1.0


@given(st.sampled_from(["gnmt", "power"]), st.floats(0, 3), st.integers(1, 500))
def test_penalties_never_fall_with_the_length(kind, alpha, length):
    penalty = LengthPenalty(kind, alpha)
    assert 1.0 <= penalty.divisor(length) <= penalty.divisor(length + 1)


@pytest.mark.parametrize(
    "text",
    ["0.6", "gnmt", "gnmt:", "gnmt:-1", "gnmt:nan", "gnmt:1e308", "power:11", "wu:1", "none:1"],
)
def test_a_penalty_without_its_formula_is_refused(text):
    with pytest.raises(SettingError, match=r"gnmt:ALPHA, power:ALPHA or none.*the paper's"):
        LengthPenalty.parse(text)


def test_limits_count_from_the_source_or_from_nothing():
    assert LengthLimit.parse("input+50").tokens(7) == 57
    assert LengthLimit.parse("input+0").tokens(7) == 7
    assert LengthLimit.parse("20").tokens(7) == 20


@pytest.mark.parametrize("text", ["", "0", "-5", "input", "input+", "input-5", "50+input", "²"])
def test_a_limit_of_another_form_is_refused(text):
    with pytest.raises(SettingError, match=r"input\+N, or N"):
        LengthLimit.parse(text)
