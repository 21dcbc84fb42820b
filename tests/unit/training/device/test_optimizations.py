import pytest
import torch

from heedful.training.device.optimizations import describe_steps, why_padded
from heedful.training.objective.likelihood import Likelihood
from tests.support.models import small

GPU = torch.device("cuda", 0)
WIDE = {"d_model": 16, "heads": 2}


class Other(Likelihood):
    """An objective of a plugin."""

    def describe(self):
        return "something else"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"device": torch.device("cpu")}, "only a GPU computes"),
        ({"precision": "fp32"}, "not fp32"),
        ({"optimizer": "sgd"}, "is sgd"),
        ({"objective": Other()}, "something else"),
        ({"ranks": 2}, "2 processes"),
        ({"model": small(**WIDE, attention={"score": "additive"})}, "additive"),
        ({"objective": Likelihood(0.1)}, ""),
        ({}, ""),
    ],
    ids=["processor", "precision", "update", "objective", "ranks", "model", "likelihood", "none"],
)
def test_what_needs_padding_is_named(changes, reason):
    wanted = {"model": small(**WIDE), "device": GPU, "precision": "bf16", **changes}
    found = why_padded(**wanted)
    assert reason in found
    assert bool(found) == bool(reason)
    assert found in describe_steps(found)
