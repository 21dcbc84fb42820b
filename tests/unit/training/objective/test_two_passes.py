"""SimCut and R-Drop: two passes as one part of a micro-batch's loss."""

import numpy as np
import pytest
import torch

from heedful.data.batching import Collator
from heedful.kernels.attention import Packing
from heedful.kernels.pair_loss import PairFactors, plain_pair_loss
from heedful.training import trainer as trainer_module
from heedful.training.distributed import RankGroup
from heedful.training.objective.cut import cut_embeddings
from heedful.training.objective.likelihood import Likelihood, Objective
from heedful.training.objective.two_passes import TwoPasses
from tests.support.models import FAMILIES, small
from tests.unit.training.test_trainer import trainer

PAIRS = [[4, 5, 6, 9, 9, 11], [7, 8], [12], [5, 5, 4, 13]]
FACTORS = {
    "simcut": PairFactors(1.0, 0.0, 3.0, 0.0),
    "rdrop": PairFactors(0.5, 0.5, 1.25, 1.25),
}


def batch_of(pairs=PAIRS):
    return Collator(0, 2, 3).batch(pairs, [[*pair[::-1], 6] for pair in pairs])


def objective(kind="simcut", cut=None, start=0, smoothing=0.1):
    share = {"simcut": 0.3, "rdrop": 0.0}[kind] if cut is None else cut
    return TwoPasses(kind, FACTORS[kind], Likelihood(smoothing), share, start)


def gradients(loss, model):
    found = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return [part for part in found if part is not None]


def by_definition(chosen, model, batch):
    """The loss by autograd through all logits, with the penalties of both passes."""
    first = model.states(batch.source, batch.target_in)
    penalties = [model.penalty()]
    with cut_embeddings(model, chosen.cut):
        second = model.states(batch.source, batch.target_in)
    penalties.append(model.penalty())
    real = batch.target_out != 0
    out, smoothing = model.output, chosen.likelihood.smoothing
    found = plain_pair_loss(
        *(first[real], second[real], batch.target_out[real], out.weight, out.bias),
        *(chosen.factors, smoothing, "uniform"),
    )
    penalty = sum(p * batch.target_tokens / 2 for p in penalties if p is not None)
    return found, penalty


@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("family", FAMILIES)
def test_it_is_its_definition_in_every_family(family, kind):
    model, batch = small(**FAMILIES[family]).train(), batch_of()
    chosen = objective(kind, cut=0.3)
    assert isinstance(chosen, Objective)
    torch.manual_seed(5)
    (part,) = chosen.parts(model, batch, np.arange(4), 1)
    torch.manual_seed(5)
    found, penalty = by_definition(chosen, model, batch)
    sums = part.read_sums()
    assert sums.loss == pytest.approx(found.loss.item(), rel=1e-5)
    assert sums.nll == pytest.approx(found.nll.item(), rel=1e-5)
    # a difference of logarithms of nearly equal probabilities, in fp32
    assert sums.figure == pytest.approx(found.divergence.item(), rel=1e-4, abs=1e-6)
    assert sums.penalty == pytest.approx(torch.as_tensor(penalty).item(), rel=1e-5)
    assert part.has_penalty == (family == "experts")
    assert sums.figure > 0.0 and sums.pairs == batch.target_tokens
    for ours, theirs in zip(
        gradients(part.loss, model), gradients(found.loss + penalty, model), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("ties", ["all", "none"])
def test_padding_inside_or_not_is_the_same(ties, dtype, monkeypatch):
    model, batch = small(d_model=32, tie_embeddings=ties).to(dtype), batch_of()
    results = []
    for packs in (True, False):
        if not packs:
            monkeypatch.setattr(Packing, "of", classmethod(lambda cls, real: None))
        torch.manual_seed(3)
        (part,) = objective(smoothing=0.2).parts(model, batch, np.arange(4), 1)
        results.append((part.loss.detach(), gradients(part.loss, model)))
    (loss, ours), (expected, theirs) = results
    is_exact = dtype == torch.float32
    torch.testing.assert_close(loss, expected, rtol=1e-5 if is_exact else 1e-2, atol=0)
    for one, two in zip(ours, theirs, strict=True):
        distance = float((one - two).float().norm())
        assert distance <= (1e-4 if is_exact else 0.05) * float(two.float().norm()) + 1e-5


def test_the_gradient_goes_through_both_passes():
    model, batch = small(dropout=0.0).train(), batch_of()
    (part,) = objective(cut=1.0).parts(model, batch, np.arange(4), 1)
    ours = gradients(part.loss, model)
    real = batch.target_out != 0
    first, second = [], []
    for cuts, states in ((0.0, first), (1.0, second)):
        with cut_embeddings(model, cuts):
            states.append(model.states(batch.source, batch.target_in)[real])
    for stopped in (first, second):
        held = [
            states[0].detach() if states is stopped else states[0] for states in (first, second)
        ]
        out = model.output
        alone = plain_pair_loss(
            *held, batch.target_out[real], out.weight, out.bias, FACTORS["simcut"]
        )
        theirs = torch.autograd.grad(
            alone.loss, list(model.parameters()), retain_graph=True, allow_unused=True
        )
        pairs = zip(ours, (part for part in theirs if part is not None), strict=True)
        assert not all(torch.allclose(one, two, rtol=1e-2) for one, two in pairs)


def test_before_its_start_it_is_the_likelihood_to_the_bit():
    model, batch = small().train(), batch_of()
    late = objective(start=10)
    losses = []
    for chosen, step in ((late, 10), (Likelihood(0.1), 10), (late, 11), (late, 0)):
        torch.manual_seed(1)
        (part,) = chosen.parts(model, batch, np.arange(4), step)
        losses.append((part.loss.detach(), part.read_sums()))
    assert torch.equal(losses[0][0], losses[1][0]) and losses[0][1] == losses[1][1]
    assert losses[0][1].pairs == 0 and losses[2][1].pairs > 0
    assert losses[3][1].pairs > 0  # the check of memory
    assert losses[2][1].flops > 0 and losses[0][1].flops == 0
    assert "from step 11" in late.describe() and "30%" in late.describe()
    assert "from" not in objective("rdrop").describe()


def test_a_second_pass_doubles_the_operations():
    totals = []
    for chosen in (Likelihood(0.1), objective()):
        made = trainer()
        made.objective = chosen
        made.model.train()
        rows = made.batches.epoch(0)[0]
        totals.append(made._forward_backward(1, *made._own_share(rows)))
    assert totals[1].flops == 2 * totals[0].flops > 0
    assert totals[1].needed_flops == 2 * totals[0].needed_flops
    assert totals[1].target_tokens == totals[0].target_tokens == totals[1].pairs


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_micro_batches_and_ranks_add_up_to_the_whole(precision, monkeypatch):
    monkeypatch.setattr(RankGroup, "all_reduce", lambda self, values: values)
    monkeypatch.setattr(RankGroup, "all_reduce_gradients", lambda self, tensors: None)

    def step(micro, world):
        """Gradients and sums of the first batch, added over ranks; all tokens are cut."""
        sums, losses = None, 0.0
        for rank in range(world):
            made = trainer(micro=micro, precision=precision)
            made.objective, made.ranks = objective(cut=1.0), RankGroup(rank, world)
            made.model.eval()  # no dropout
            rows = made.batches.epoch(0)[0]
            totals = made._forward_backward(1, *made._own_share(rows))
            mine = [part.clone() for part in made.optimizer.gradients]
            sums = mine if sums is None else [a + b for a, b in zip(sums, mine, strict=True)]
            losses += totals.loss
        return sums, losses

    assert trainer_module.RankGroup is RankGroup
    expected, whole = step(1000, 1)
    for micro, world in ((40, 1), (40, 2)):
        found, loss = step(micro, world)
        assert loss == pytest.approx(whole, rel=1e-5 if precision == "fp32" else 2e-2)
        for ours, theirs in zip(found, expected, strict=True):
            bound = 1e-4 if precision == "fp32" else 0.1
            assert float((ours - theirs).norm()) <= bound * float(theirs.norm()) + 1e-3
