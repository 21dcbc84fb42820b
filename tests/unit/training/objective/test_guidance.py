"""Guided attention: a penalty off the diagonal that fades."""

import math

import numpy as np
import pytest
import torch

from heedful.data.batching import Collator
from heedful.training.objective.guidance import GuidedAttention
from heedful.training.objective.likelihood import Likelihood
from tests.support.models import FAMILIES, small

SOURCES, TARGETS = [[4, 5, 6], [7]], [[5, 6], [4, 4, 4]]
BATCH = Collator(0, 2, 3).batch(SOURCES, TARGETS)


def by_hand(weights):
    """The penalty of weights (batch, heads, target, source), number by number."""
    total = 0.0
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        for i in range(len(target) + 1):
            for j in range(len(source) + 1):
                between = i / len(target) - j / len(source)
                far = 1.0 - math.exp(-(between**2) / (2 * 0.2**2))
                total += far * float(weights[row, :, i, j].mean())
    return total


def test_the_penalty_is_the_mean_weight_off_the_diagonal():
    weights = torch.rand(2, 2, 4, 4, generator=torch.Generator().manual_seed(1))
    guide = GuidedAttention(3.0, 10)
    penalty = guide.penalty([weights, weights], BATCH, 0, step=1)
    assert float(penalty) == pytest.approx(3.0 * by_hand(weights), rel=1e-5)


def test_it_fades_to_nothing():
    guide = GuidedAttention(2.0, 4)
    assert [guide.strength_at(step) for step in range(1, 7)] == [2.0, 1.5, 1.0, 0.5, 0.0, 0.0]


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "bytenet"])
def test_its_gradient_reaches_the_model_and_the_loss_is_that_without(family):
    model = small(**FAMILIES[family]).eval()
    guided = Likelihood(guide=GuidedAttention(1.0, 5))
    (part,) = guided.parts(model, BATCH, np.arange(2), 1)
    (plain,) = Likelihood().parts(model, BATCH, np.arange(2), 1)
    sums = part.read_sums()
    assert sums.loss == pytest.approx(plain.read_sums().loss, rel=1e-5)
    own = model.penalty()
    own = 0.0 if own is None else float(own.detach()) * BATCH.target_tokens
    with torch.no_grad():
        weights = model.attention(BATCH.source, BATCH.target_in).cross
    expected = own + sum(map(by_hand, weights)) / len(weights)
    assert sums.penalty == pytest.approx(expected, rel=1e-4)
    ours = torch.autograd.grad(part.loss, [model.embed_source.weight])[0]
    theirs = torch.autograd.grad(plain.loss, [model.embed_source.weight])[0]
    assert not torch.allclose(ours, theirs)


def test_nothing_changes_when_it_has_faded():
    model = small().eval()
    (faded,) = Likelihood(guide=GuidedAttention(1.0, 5)).parts(model, BATCH, np.arange(2), 6)
    (plain,) = Likelihood().parts(model, BATCH, np.arange(2), 6)
    assert torch.equal(faded.loss, plain.loss) and not faded.has_penalty
