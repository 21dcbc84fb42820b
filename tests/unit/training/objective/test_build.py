"""The objective that the settings of a run name."""

from types import SimpleNamespace

import pytest

from heedful.config.load import load_config
from heedful.config.schema import RunConfig
from heedful.search.rules import AllowedTokens
from heedful.training.objective.build import build_objective
from heedful.training.objective.likelihood import Objective


def built(*settings):
    config: RunConfig = load_config("tiny", list(settings))
    run = SimpleNamespace(
        config=config,
        allowed=AllowedTokens(20, (0, 2)),
        tokenizer=SimpleNamespace(decode=lambda ids: " ".join(map(str, ids))),
    )
    return build_objective(run, SimpleNamespace(micro_batch_tokens=512))


def test_likelihood_has_the_smoothing_of_the_recipe():
    found = built("train.label_smoothing=0.2", "train.smoothing_target=others")
    assert (found.smoothing, found.form, found.weight) == (0.2, "others", 1.0)


def test_reward_and_risk_have_their_settings():
    reward = built("train.objective=reward", "train.samples=5", "train.seed=9")
    assert (reward.figure, reward.candidates, reward.seed) == ("reward", 5, 9)
    assert (reward.likelihood_weight, reward.micro_batch_tokens) == (0.017, 512)
    assert "5 sampled translations" in reward.describe()
    risk = built(
        "train.objective=risk",
        "train.n_best=6",
        "train.risk_sharpness=0.005",
        "train.risk_reference=true",
        "train.reward_metric=chrf",
        "train.likelihood_weight=0",
        "search.eos_candidates=twice",
        "search.max_length=7",
    )
    assert (risk.figure, risk.candidates, risk.sharpness) == ("risk", 6, 0.005)
    assert risk.with_reference and risk.likelihood_weight == 0.0
    search = risk.search
    assert (search.beam, search.n_best, search.eos_ranks) == (6, 6, 12)
    assert risk.limit.tokens(100) == 7
    assert "6 best" in risk.describe()


def test_two_passes_have_their_factors_and_their_start():
    simcut = built("train.objective=simcut", "train.simcut_weight=2", "train.simcut_share=0.1")
    assert (simcut.factors, simcut.cut, simcut.single_pass_steps) == ((1.0, 0.0, 2.0, 0.0), 0.1, 0)
    settings = ("train.steps=25", "train.second_pass_start=0.5", "train.label_smoothing=0.2")
    rdrop = built("train.objective=rdrop", *settings)
    assert (rdrop.factors, rdrop.cut) == ((0.5, 0.5, 1.25, 1.25), 0.0)
    assert (rdrop.single_pass_steps, rdrop.likelihood.smoothing) == (12, 0.2)
    settings = ("train.steps=100", "train.second_pass_start=0.29")  # a binary fraction below 0.29
    assert built("train.objective=rdrop", *settings).single_pass_steps == 29


@pytest.mark.parametrize("kind", ["likelihood", "simcut", "rdrop", "reward", "risk"])
def test_each_is_an_objective(kind):
    assert isinstance(built(f"train.objective={kind}"), Objective)
