import pytest

from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.families.experts.config import ExpertsConfig, mixture_layers


def test_there_are_no_mixtures_unless_a_number_is_given():
    assert ExpertsConfig().changed() == []
    assert ExpertsConfig(count=4).changed() == [("model.experts.count", 4)]
    with pytest.raises(SettingError, match=r"applies only if `model.experts.count` is not none"):
        load_config("tiny", ["model.experts.per_token=3"])


@pytest.mark.parametrize(
    "setting", ["importance_loss=0.1", "load_loss=0.1"], ids=lambda text: text[:6]
)
def test_balanced_gating_has_nothing_to_balance(setting):
    experts = ["model.experts.count=8", f"model.experts.{setting}"]
    load_config("tiny", experts)
    with pytest.raises(SettingError, match=r"applies only if `model.experts.gating` is noisy"):
        load_config("tiny", [*experts, "model.experts.gating=balanced"])


@pytest.mark.parametrize(
    ("text", "layers"), [("all", (1, 2, 3)), ("none", ()), ("2", (2,)), ("3 1 3", (1, 3))]
)
def test_layers_are_named(text, layers):
    assert mixture_layers(text, 3) == layers


@pytest.mark.parametrize("text", ["0", "1,2", "two", "-1", "1  2", ""])
def test_other_names_of_layers_are_refused(text):
    with pytest.raises(SettingError, match="must be all, none, or layer numbers from 1"):
        ExpertsConfig(count=2, encoder_layers=text)


@pytest.mark.family("pooled")
def test_a_side_of_another_family_has_no_mixtures():
    chosen = ["model.encoder=average", "model.experts.count=4"]
    load_config("tiny", chosen)
    with pytest.raises(SettingError, match=r"applies only if `model.encoder` is transformer"):
        load_config("tiny", [*chosen, "model.experts.encoder_layers=1"])
