"""Risk over n-best lists against its formula, written out."""

import numpy as np
import pytest
import torch

from heedful.search.beam import beam_search
from heedful.search.rules import AllowedTokens
from heedful.search.settings import SearchOptions
from tests.support.models import small
from tests.unit.training.objective.test_candidates import (
    ALLOWED,
    PAIRS,
    ROWS,
    gradient,
    letters,
    objective,
    share_of_words,
)


def exact_risk(model, sharpness, with_reference):
    """The sum over all pairs, one sequence at a time, by the full softmax."""
    total = torch.zeros(())
    for pair in PAIRS:
        source = torch.tensor([[*pair, 3]])
        settings = SearchOptions(beam=4, n_best=4)
        with torch.inference_mode():
            found = beam_search(model, source, [3], settings, [ALLOWED])[0]
        texts = {h.tokens: h.ended for h in found}
        if with_reference:
            texts.setdefault(tuple(pair), True)
        scores, risks = [], []
        for tokens, ended in texts.items():
            outs = [*tokens, 3] if ended else list(tokens)
            states = model.states(source, torch.tensor([[2, *tokens]]))[0]
            among = model.project(states)[:, :6].clone()
            among[:, [0, 2]] = float("-inf")
            chosen = torch.log_softmax(among, dim=1)
            scores.append(sum(chosen[place, token] for place, token in enumerate(outs)))
            risks.append(1.0 - share_of_words([letters(tokens)], letters(pair))[0])
        powers = torch.stack([score * sharpness for score in scores]).exp()
        total = total + (powers * torch.tensor(risks)).sum() / powers.sum()
    return total


@pytest.mark.parametrize("with_reference", [False, True])
@pytest.mark.parametrize("sharpness", [0.005, 1.0])
def test_value_and_gradient_are_those_of_the_formula(sharpness, with_reference):
    model = small()
    with torch.no_grad():
        model.embed_target.weight.mul_(3.0)
    chosen = objective(
        "risk", sharpness=sharpness, with_reference=with_reference, likelihood_weight=0.0
    )
    found, sums = gradient(chosen, model, PAIRS, ROWS)
    model.zero_grad()
    risk = exact_risk(model, sharpness, with_reference)
    risk.backward()
    exact = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    assert sum(part.figure for part in sums) == pytest.approx(float(risk.detach()), rel=1e-4)
    scale = float(exact.norm())
    assert scale > 1e-5
    torch.testing.assert_close(found, exact, atol=1e-4 * scale, rtol=1e-3)


def test_lists_of_different_length_are_filled_without_weight():
    log_p = torch.tensor([[-1.0, -2.0], [-0.5, 0.0]], requires_grad=True)
    rewards = torch.tensor([[1.0, 0.0], [0.25, 0.0]])
    real = torch.tensor([[True, True], [True, False]])
    losses = objective("risk").losses(log_p, rewards, real)
    share = torch.softmax(torch.tensor([-1.0, -2.0]), 0)[1].item()
    assert losses.figure == losses.value == pytest.approx(share + 0.75)
    (found,) = torch.autograd.grad(losses.loss, log_p)
    assert float(found[0, 0]) == pytest.approx(-share * (1 - share))
    assert found[1].tolist() == [0.0, 0.0]  # alone in its list, a candidate cannot gain


def test_a_reference_that_is_in_the_list_joins_it_once():
    chosen = objective("risk", with_reference=True, allowed=AllowedTokens(6, (0, 2)))
    source = torch.tensor([[4, 5, 3]])
    (found,) = chosen.propose(small(), source, [3], np.array([0]), 1)
    ended = next(each for each in found if each.ended)
    assert chosen.with_references([found], [ended.tokens]) == [found]
    longer = chosen.with_references([found], [(4, 4, 4, 4, 4)])[0]
    assert len(longer) == len(found) + 1
