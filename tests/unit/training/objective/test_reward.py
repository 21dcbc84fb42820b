"""The estimate of the expected reward's gradient against its enumeration."""

import itertools

import numpy as np
import pytest
import torch

from heedful.training.objective.candidates import OwnTranslation, candidate_log_probabilities
from tests.support.models import small
from tests.unit.training.objective.test_candidates import ALLOWED, objective

LIMIT = 2
SOURCE = torch.tensor([[4, 5, 3]])
# all translations of at most two of the words 1, 4, 5
EVERY = [
    OwnTranslation(tokens, len(tokens) < LIMIT)
    for length in range(LIMIT + 1)
    for tokens in itertools.product((1, 4, 5), repeat=length)
]


def probabilities(model):
    return candidate_log_probabilities(model, SOURCE.expand(len(EVERY), -1), EVERY, ALLOWED)


def lively():
    model = small()
    with torch.no_grad():
        model.embed_target.weight.mul_(1.5)
    return model


def flat(gradients):
    return torch.cat([g.flatten() for g in gradients if g is not None])


@pytest.mark.parametrize("samples", [2, 3])
def test_it_is_unbiased_over_every_tuple_of_samples(samples):
    model = lively()
    chosen = objective(candidates=samples)
    rewards = torch.tensor(chosen.judge(EVERY, [4, 5]))
    log_p = probabilities(model)
    assert float(log_p.exp().sum().detach()) == pytest.approx(1.0, abs=1e-5)
    weights = list(model.parameters())
    exact = flat(
        torch.autograd.grad(
            -(log_p.exp() * rewards).sum(), weights, retain_graph=True, allow_unused=True
        )
    )
    # each tuple as a pair, weighted by its probability: the losses are sums over pairs
    tuples = torch.tensor(list(itertools.product(range(len(EVERY)), repeat=samples)))
    chances = log_p.detach()[tuples].sum(dim=1).exp()
    expected = torch.zeros(())
    for chance, some in zip(chances, tuples.split(1), strict=True):
        expected = expected + chance * chosen.losses(log_p[some], rewards[some], some >= 0).loss
    found = flat(torch.autograd.grad(expected, weights, allow_unused=True))
    assert float(exact.norm()) > 0.01
    torch.testing.assert_close(found, exact, atol=1e-5 * float(exact.norm()) + 1e-7, rtol=1e-3)


def test_the_baseline_of_a_sample_is_the_mean_of_the_others():
    log_p = torch.tensor([[-1.0, -2.0, -3.0]], requires_grad=True)
    rewards = torch.tensor([[0.9, 0.3, 0.0]])
    losses = objective(candidates=3).losses(log_p, rewards, rewards >= 0)
    (gradient,) = torch.autograd.grad(losses.loss, log_p)
    advantages = torch.tensor([[0.9 - 0.15, 0.3 - 0.45, 0.0 - 0.6]])
    torch.testing.assert_close(gradient, -advantages / 3)
    assert (losses.value, losses.figure) == pytest.approx((0.6, 0.4))


def test_samples_have_the_probabilities_that_they_are_scored_with():
    model, steps = lively(), 100
    chosen = objective(candidates=60)
    counts = dict.fromkeys(EVERY, 0)
    for step in range(steps):
        for drawn in chosen.propose(model, SOURCE, [LIMIT], np.array([5]), step)[0]:
            counts[drawn] += 1
    expected = (60 * steps * probabilities(model).detach().exp()).tolist()
    assert min(expected) > 3
    statistic = sum(
        (seen - wanted) ** 2 / wanted
        for seen, wanted in zip(counts.values(), expected, strict=True)
    )
    # chi-square with 12 degrees of freedom: above 32.9 once in a thousand times
    assert statistic < 32.9


def test_draws_are_a_function_of_seed_step_and_pair():
    model, chosen = lively(), objective(candidates=6, seed=3)
    sources = torch.tensor([[4, 5, 3], [5, 3, 0], [4, 5, 3]])
    limits = [4, 4, 4]

    def draws(order, step, chosen=chosen):
        rows = np.array([11, 22, 33])[order]
        found = chosen.propose(model, sources[order], limits[: len(order)], rows, step)
        return dict(zip(rows.tolist(), found, strict=True))

    first = draws([0, 1, 2], 7)
    assert draws([2, 0, 1], 7) == first
    assert draws([1], 7)[22] == first[22]
    assert first[11] != first[33]  # the same sentence, another pair
    assert draws([0, 1, 2], 8) != first
    assert draws([0, 1, 2], 7, objective(candidates=6, seed=4)) != first
