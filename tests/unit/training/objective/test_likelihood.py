"""The likelihood as one part of a micro-batch's loss."""

import numpy as np
import pytest
import torch

from heedful.data.batching import Collator
from heedful.kernels.loss import plain_loss
from heedful.training.objective.likelihood import Likelihood, Objective
from tests.support.models import small

PAIRS = [[4, 5, 6], [7, 8]]


@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_its_only_part_is_the_weighted_loss(weight):
    model, batch = small(), Collator(0, 2, 3).batch(PAIRS, PAIRS)
    objective = Likelihood(0.1, "others", weight)
    assert isinstance(objective, Objective) and objective.figure == ""
    (part,) = objective.parts(model, batch, np.arange(2), 1)
    real = batch.target_out != 0
    states = model.states(batch.source, batch.target_in)[real]
    loss, nll = plain_loss(states, batch.target_out[real], model.output.weight, None, 0.1, "others")
    expected = weight * float(loss.detach())
    assert float(part.loss.detach()) == pytest.approx(expected, rel=1e-5)
    assert part.read_sums().loss == pytest.approx(expected, rel=1e-5)
    assert part.read_sums().nll == pytest.approx(float(nll.detach()), rel=1e-5)
    assert not part.has_penalty
    (mine,) = torch.autograd.grad(part.loss, [model.output.weight])
    (theirs,) = torch.autograd.grad(loss, [model.output.weight])
    torch.testing.assert_close(mine, weight * theirs, atol=1e-4, rtol=1e-4)
