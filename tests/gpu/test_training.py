"""Steps of fixed shapes on a GPU: every optimization, and a second run, give the same numbers."""

import math

import pytest
import torch

from heedful.errors import TrainingFailed
from heedful.training.device.optimizations import Optimizations, why_padded
from heedful.training.device.trainer import DeviceTrainer
from heedful.training.trainer import Trainer
from tests.unit.training.device.test_trainer import run, trainer, weights

SIZES = {"d_model": 64, "d_ff": 128, "heads": 2}


@pytest.fixture
def make(gpu):
    """Make the trainer of a toy task, moved to the GPU before it begins."""

    def made(kind=DeviceTrainer, **changes):
        changes["model_settings"] = {**SIZES, **changes.pop("model_settings", {})}
        larger = {"count": 60, "tokens": 120, "micro": 40}
        return trainer(kind, precision="bf16", device=gpu, **larger | changes)

    return made


OPTIMIZATIONS = [
    Optimizations(),
    Optimizations(compiled=False),
    Optimizations(graphs=False),
    Optimizations(ahead=False),
    Optimizations(compiled=False, graphs=False, ahead=False),
]


@pytest.mark.parametrize("optimizations", OPTIMIZATIONS, ids=str)
@pytest.mark.parametrize("micro", [40, 400], ids=["several parts", "one part"])
def test_losses_are_those_of_the_padded_loop(optimizations, micro, make):
    made = [make(Trainer, micro=micro), make(micro=micro, optimizations=optimizations)]
    assert why_padded(made[1].model, made[1].model.device, "bf16") == ""
    seen = []
    for one in made:
        losses = []
        one._note_step = lambda totals, norm, _, losses=losses: losses.append((totals.loss, norm))
        one._log_if_due = lambda *_, **__: None
        run(one)
        seen.append(losses)
    compiles = made[1]._step._run is not None
    assert compiles == optimizations.compiled  # else the compiler failed, and the log says why
    for (loss, norm), (ours, our_norm) in zip(*seen, strict=True):
        assert ours == pytest.approx(loss, rel=0.01)
        assert our_norm == pytest.approx(norm, rel=0.05)


@pytest.mark.parametrize("optimizations", OPTIMIZATIONS[:2], ids=str)
def test_a_second_run_has_the_same_bytes(optimizations, make):
    made = [make(optimizations=optimizations, dropout=0.2) for _ in range(2)]
    for one in made:
        run(one)
    first, second = map(weights, made)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_bad_step_leaves_weights_and_moments_of_before_it(make, monkeypatch):
    # a line of the log that comes by the clock would keep the next step from starting
    monkeypatch.setattr("heedful.training.device.trainer.LOG_SECONDS", math.inf)
    whole, made, started = make(steps=1), make(), []
    run(whole)
    start = made._start

    def poisoned(device_step, step, prepared):
        started.append(step)
        if step == 2:  # only this step: its update rounds the finite masters again
            made.optimizer.masters[0].view(-1)[0] = float("inf")
            made.optimizer._copy()
            made.optimizer.masters[0].copy_(whole.optimizer.masters[0])
        return start(device_step, step, prepared)

    made._start = poisoned
    with pytest.raises(TrainingFailed, match="at step 2 "):
        run(made)
    assert started[-1] == 3  # else no step could change what the bad one left
    assert all(torch.equal(one, weights(whole)[name]) for name, one in weights(made).items())
    moments = whole.optimizer.moments()
    assert all(torch.equal(one, moments[name]) for name, one in made.optimizer.moments().items())
