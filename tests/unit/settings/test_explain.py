import pytest
from pydantic import ValidationError

from heedful.config.model import ModelConfig
from heedful.errors import SettingError
from heedful.settings.explain import did_you_mean, setting_error, unknown_setting

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
    assert "`model.heads` must be a whole number, but 'many' came" in message
    assert "`model.dropout` must be less than" in message and "but 1.5 came" in message
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
        ("zzz", "`heedful train RECIPE --print-config` lists every setting"),
    ],
)
def test_an_unknown_setting_is_told_with_the_nearest(name, suggested):
    assert unknown_setting(name, KNOWN) == f"unknown setting `{name}`; {suggested}"


def test_suggestions_are_joined():
    assert did_you_mean(["a", "b"]) == "did you mean `a` or `b`?"
