"""Training with the fast CPU kernels, compared with training by the plain modules."""

import json
from functools import cache

import pytest

# In processes of their own, where the types of every call are not checked.
PROGRAM = """
import json, sys
import torch
from heedful.config.train import TrainConfig
from heedful.config.model import ModelConfig
from heedful.families.build import build_model
from heedful.kernels import linear, torch_internals
from heedful.model.initialize import initialize
from heedful.kernels.attention import Packing
from heedful.kernels.loss import chunked_loss, plain_loss
from heedful.training.optimizer import MixedPrecisionOptimizer

precision, activation, fast = sys.argv[1], sys.argv[2], sys.argv[3] != "plain"
if sys.argv[3] == "documented":
    torch_internals._resolve = lambda name: None
    torch_internals.internal.cache_clear()
torch.set_num_threads(1)
if not fast:
    linear._HAS_ONEDNN = False
    Packing.of = classmethod(lambda cls, real: None)
shape = {"d_model": 64, "d_ff": 128, "heads": 4, "encoder_layers": 2, "decoder_layers": 2}
shape["activation"] = activation
model = build_model(ModelConfig(**shape, dropout=0.0), 25, 25, max_length=20)
initialize(model, 1)
weights = MixedPrecisionOptimizer(model, precision, TrainConfig())
torch.manual_seed(1)
losses = []
for step in range(1, 121):
    # the target is the source backwards, one word larger
    source = torch.randint(4, 24, (24, 5))
    lengths = torch.randint(2, 6, (24, 1))
    place = torch.arange(5)
    target = (source + 1).gather(1, (lengths - 1 - place).clamp(min=0))
    source[place >= lengths] = 0
    target[place >= lengths] = 0
    start = torch.full((24, 1), model.start_token)
    states = model.states(source, torch.cat((start, target[:, :-1]), 1) * (place < lengths))
    real = place < lengths
    loss_of = chunked_loss if fast else plain_loss
    loss, nll = loss_of(states[real], target[real], model.output.weight, model.output.bias)
    loss.backward()
    weights.accumulate_gradients()
    weights.step(0.025 * min(step ** -0.5, step * 60 ** -1.5), 1.0 / int(real.sum()))
    losses.append(float(nll) / int(real.sum()))
print(json.dumps(losses))
"""


@cache
def trajectory(heedful_cli, precision, activation, way):
    done = heedful_cli("-c", PROGRAM, precision, activation, way, timeout=500)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def around(losses, step):
    return sum(losses[step - 10 : step + 10]) / 20


@pytest.mark.parametrize(
    ("precision", "activation", "way", "early", "late"),
    [
        ("fp32", "silu", "fast", 1e-5, 1e-5),
        ("fp32", "silu", "documented", 1e-5, 1e-5),  # torch without its internal functions
        # A sum that is 0 but for rounding may be cut off in one way and not in the other: another
        # gradient, from which the paths part.
        ("fp32", "relu", "fast", 0.02, 0.05),
        pytest.param("bf16", "relu", "fast", 0.02, 0.15, marks=pytest.mark.soak),
    ],
)
def test_a_hundred_and_twenty_steps_go_the_same_way(
    heedful_cli, precision, activation, way, early, late
):
    plain = trajectory(heedful_cli, "fp32", activation, "plain")
    fast = trajectory(heedful_cli, precision, activation, way)
    assert plain[0] > 3.0
    assert around(plain, 110) < 0.4 * plain[0]
    # what rounding changes grows as the steps go on
    for step in range(10, 120, 20):
        bound = early if step < 80 else late
        assert around(fast, step) == pytest.approx(around(plain, step), rel=bound), step
