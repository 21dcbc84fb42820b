from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError

from heedful.config.model import ModelConfig
from heedful.errors import SettingError
from heedful.settings.explain import (
    describe_rule,
    did_you_mean,
    setting_error,
    unknown_setting,
)

KNOWN = ("data.max_length", "model.dropout", "search.max_length", "train.steps")


def told(**settings: object) -> str:
    """What is said of settings of the model that cannot be."""
    with pytest.raises(ValidationError) as wrong:
        ModelConfig.model_validate(settings)
    error = setting_error(wrong.value, "model", KNOWN)
    assert isinstance(error, SettingError)
    return str(error)


def test_every_wrong_setting_is_in_one_paragraph():
    message = told(heads="many", dropout=1.5, dropuot=0.1)
    assert "\n" not in message
    assert "`model.heads` must be a whole number, but got 'many'" in message
    assert "`model.dropout` must be below 1, but got 1.5" in message
    assert "unknown setting `model.dropuot`; did you mean `model.dropout`?" in message


def test_a_rule_for_several_settings_names_them_itself():
    message = told(d_model=30, heads=4)
    assert message.count("`model.d_model`") == message.count("`model.heads`") == 1


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("train.stepz", "did you mean `train.steps`?"),
        ("dropout", "did you mean `model.dropout`?"),
        ("max_length", "did you mean `data.max_length` or `search.max_length`?"),
        ("train.epochs", "did you mean `train.steps`?"),
        ("max_update", "did you mean `train.steps`?"),
        ("zzz", "`heedful train RECIPE --print-config` lists every setting"),
    ],
)
def test_an_unknown_setting_is_told_with_the_nearest(name, suggested):
    assert unknown_setting(name, KNOWN) == f"unknown setting `{name}`; {suggested}"


def test_suggestions_are_joined():
    assert did_you_mean(["a", "b"]) == "did you mean `a` or `b`?"


class Bounds(BaseModel):
    above: Annotated[float, Field(gt=0.5)] = 1.0
    below: Annotated[int, Field(lt=100_000)] = 1
    least: Annotated[int, Field(ge=1)] = 1
    most: Annotated[float, Field(le=2.0)] = 1.0
    kind: Literal["soft", "hard", "dry"] = "soft"
    words: Annotated[list[str], Field(min_length=2)] = ["a", "b"]
    name: Annotated[str, Field(max_length=3)] = "a"
    number: Annotated[float, Field(allow_inf_nan=False)] = 1.0
    flag: bool = True


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("above", 0.5, "must be above 0.5"),
        ("below", 100_000, "must be below 100,000"),
        ("least", 0, "must be at least 1"),
        ("most", 3, "must be at most 2"),
        ("kind", "wet", "must be 'soft', 'hard' or 'dry'"),
        ("words", ["a"], "must be a list of at least 2 entries"),
        ("words", "a", "must be a list"),
        ("name", "abcd", "must be at most 3 characters"),
        ("number", float("inf"), "must be a finite number"),
        ("flag", "perhaps", "must be true or false"),
        ("least", "many", "must be a whole number"),
        ("least", 1.5, "must be a whole number"),
    ],
)
def test_rules_are_told_in_our_words(name, value, rule):
    with pytest.raises(ValidationError) as wrong:
        Bounds.model_validate({name: value})
    (error,) = wrong.value.errors()
    assert describe_rule(error) == rule
