"""The reason for padding in a dry run is that of the training itself."""

import pytest
import torch

from heedful.config.load import load_config
from heedful.training.device.optimizations import describe_steps, why_padded
from heedful.training.device.plan import Devices
from heedful.training.dry_run import _planned_steps, padding_reason
from heedful.training.objective.build import build_objective
from tests.support.models import small

GPU = torch.device("cuda")


class OfSettings:
    """As much of a run as an objective that trains from nothing reads."""

    def __init__(self, config):
        self.config = config


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ([], ""),
        (["train.objective=simcut"], "the objective is simcut"),
        (["train.objective=rdrop", "train.second_pass_start=0.5"], "the objective is rdrop"),
        (["train.guided_attention=1"], "attention is guided"),
        (["train.optimizer=sgd"], "the optimizer is sgd"),
    ],
    ids=str,
)
def test_objectives_with_padding_are_named(settings, words):
    sgd = ["train.schedule=constant", "train.learning_rate=1"] if "sgd" in words else []
    config = load_config("tiny", [*settings, *sgd])
    model = small(d_model=16, heads=2)
    reason = padding_reason(model, GPU, "bf16", config.train)
    assert reason == words
    objective = build_objective(OfSettings(config), None)
    trained = why_padded(model, GPU, "bf16", config.train.optimizer, objective)
    assert bool(trained) == bool(reason)
    assert describe_steps(reason).startswith(
        "steps: with padding" if reason else "steps: without padding"
    )


UNPADDED = "without padding, compiled, replayed from CUDA graphs, prepared ahead"
PADDED = "with padding, collated one at a time, because"


@pytest.mark.parametrize(
    ("settings", "model", "count", "expected"),
    [
        ([], {}, 1, [f"steps       {UNPADDED}"]),
        (
            [],
            {},
            8,
            [
                f"steps       one device, {UNPADDED}",
                f"steps       8 devices, {PADDED} 8 processes add up their gradients",
            ],
        ),
        (
            ["train.precision=fp32", "train.device=cpu"],
            {},
            1,
            [f"steps       {PADDED} attention without padding needs bf16, not fp32"],
        ),
        (
            [],
            {"positions": "relative-buckets"},
            1,
            [
                f"steps       {PADDED} RelativeBuckets is added to the scores and so needs padded "
                "rows"
            ],
        ),
        (
            ["train.objective=simcut"],
            {},
            1,
            [f"steps       {PADDED} the objective is simcut"],
        ),
    ],
    ids=["one", "several", "precision", "model", "objective"],
)
def test_steps_of_planned_devices_need_no_gpu(settings, model, count, expected):
    config = load_config("tiny", settings)
    with torch.device("meta"):
        built = small(d_model=16, heads=2, **model)
    devices = Devices(1000.0, count, 10.0)
    assert [*_planned_steps(config.train, built, devices)] == expected
