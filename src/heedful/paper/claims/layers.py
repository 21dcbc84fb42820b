"""Measurements for claims about layers with untrained weights."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.config.load import load_config
from heedful.experiments.estimate import Estimate
from heedful.experiments.process import time_in_turns
from heedful.experiments.work import build
from heedful.families.table1 import LayerSizes
from heedful.model.additive import MOST_NUMBERS, additive_attention
from heedful.model.attention import scaled_dot_product_attention
from heedful.model.initialize import initialize
from heedful.paper.claims.peak_memory import peak_bytes
from heedful.paper.claims.statement import Measured, mean_curve, say_times, sign
from heedful.paper.dependent_products import count_products
from heedful.paper.layer_build import build_layer
from heedful.paper.layer_kinds import KINDS
from heedful.visualise.size_curves import SizeCurve, SizePanel

_D_MODEL, _HEADS, _LENGTH = 64, 4, 24
_ROUNDS = 9
_LEAST = 0.01
"""Minimum seconds of one timing; faster functions are repeated."""
_MUCH = 2.0
"""The minimum speed ratio that counts as “much faster”."""
_SEEDS = (1, 2, 3, 4, 5)
_FADED = 1e-2
"""Smallest factor by which depth may change a gradient; the largest factor is the inverse."""
STACKS: dict[str, dict[str, str]] = {
    "residuals and norms": {},
    "residuals alone": {"norm_kind": "none"},
    "norms alone": {"residuals": "false"},
    "neither": {"norm_kind": "none", "residuals": "false"},
}
"""Settings of each stack in the claim `gradients`, by a name that states the stack's parts."""
_OTHER_PART = {"residuals alone": "norms", "norms alone": "residual connections"}
_LENGTHS, _WIDTHS = (64, 128, 256, 512), (16, 64, 256)
_POSITIONS = 4096
"""Total number of positions of the sequences on which layers are timed."""


class PlainBatchNorm(torch.nn.BatchNorm1d):
    """Batch norm over all positions of all sentences."""

    def forward(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time width"]:
        """Normalize each feature."""
        return super().forward(x.flatten(0, 1)).view_as(x)


def measure_batch_norm() -> Measured:
    """Compare the normalized states of a sentence alone and in a batch with other sentences."""
    others = (1, 2, 4, 8, 16, 32)
    norms = {
        "batch norm": PlainBatchNorm(_D_MODEL, eps=1e-6).train(),
        "layer norm": torch.nn.LayerNorm(_D_MODEL),
    }
    differences: dict[str, list[float]] = {name: [] for name in norms}
    for count in others:
        x = _states(1 + count, _LENGTH)
        for name, norm in norms.items():
            with torch.no_grad():
                apart = (norm(x[:1]) - norm(x)[:1]).abs().max()
            differences[name].append(float(apart))
    least, largest = min(differences["batch norm"]), max(differences["batch norm"])
    most = max(differences["layer norm"])
    apart = f"by at most {most:.0e}" if most else "not at all"
    headline = (
        "With batch norm, the other sentences in a batch change a sentence's states by at least "
        f"{least:.3g}; with layer norm, {apart}."
    )
    return Measured(
        [least > 1e-2, most < 1e-5],
        [headline, headline],
        "In training mode, other sentences in the batch change a sentence's states by "
        f"{least:.3g} to {largest:.3g} with batch norm, and {apart} with layer norm.",
        (SizePanel("other sentences", others, _curves(differences), "largest difference"),),
    )


def measure_gradients() -> Measured:
    """Compare the gradients at the input of deep stacks of untrained layers."""
    depths = (1, 2, 4, 8, 16, 32)
    norms = {
        name: np.array([_gradients(depth, changed) for depth in depths]).T  # (seeds, depths)
        for name, changed in STACKS.items()
    }
    factors = {name: by_seed[:, -1] / by_seed[:, 0] for name, by_seed in norms.items()}
    inside = {name: (gain > _FADED) & (gain < 1 / _FADED) for name, gain in factors.items()}
    alive = {name: bool(is_inside.all()) for name, is_inside in inside.items()}
    both, *alone, neither = alive
    enough = [name for name in alone if alive[name]]
    curves = {name: np.median(by_seed, axis=0).tolist() for name, by_seed in norms.items()}
    doubts = {name: f", so {_OTHER_PART[name]} may not be needed" for name in enough}
    limits = f"between {_FADED:g} and {1 / _FADED:g}"
    return Measured(
        [alive[both], not inside[neither].any(), None if enough else True],
        [
            f"With {name}, from 1 to {depths[-1]} layers, the gradient at the input changes by a "
            f"factor of {np.median(factors[name]):.2g} ({_range(factors[name])} in {len(_SEEDS)} "
            f"draws). A gradient with a factor {limits} counts as alive{doubts.get(name, '')}."
            for name in (both, neither, (enough or alone)[0])
        ],
        f"From 1 to {depths[-1]} layers, the gradient at the input changes by a factor of "
        + ", ".join(f"{_range(gain)} with {name}" for name, gain in factors.items())
        + f" ({len(_SEEDS)} draws of a model's initial weights). A gradient counts as alive if "
        f"its factor is {limits}."
        + "".join(f" The gradient also stays alive with {name}{doubts[name]}." for name in enough),
        (SizePanel("layers", depths, _curves(curves), "median norm of the gradient"),),
    )


def _range(values: np.ndarray) -> str:
    """Format the range of some values."""
    return f"{values.min():.2g} to {values.max():.2g}"


def _gradients(depth: int, changed: Mapping[str, str]) -> list[float]:
    """Compute the gradient norm at the input of an encoder, for each draw of its weights."""
    settings = (
        *(f"model.d_model={_D_MODEL}", f"model.d_ff={4 * _D_MODEL}", f"model.heads={_HEADS}"),
        *(f"model.encoder_layers={depth}", "model.decoder_layers=1", "model.dropout=0"),
        *(f"model.{name}={value}" for name, value in changed.items()),
    )
    model = build(load_config("tiny", settings), 100)
    x = _states(4, _LENGTH).requires_grad_()
    mask = torch.ones(len(x), 1, 1, _LENGTH, dtype=torch.bool)
    norms = []
    for seed in _SEEDS:
        initialize(model, seed)
        out = model.encoder.encode(x, mask).states
        generator = torch.Generator().manual_seed(seed)
        (gradient,) = torch.autograd.grad(out, x, torch.randn(out.shape, generator=generator))
        norms.append(float(gradient.norm()))
    return norms


def measure_additive_cost() -> Measured:
    """Measure time and memory of dot-product and additive attention on the same inputs."""
    panels, slower, larger = [], [], []
    for axis, sizes in (("positions", _LENGTHS), ("d_k", _WIDTHS)):
        kinds = [
            _scores(size, _D_MODEL) if axis == "positions" else _scores(_LENGTHS[2], size)
            for size in sizes
        ]
        seconds = _in_turn([function for pair in kinds for function in pair.values()])
        timed = seconds.reshape(len(seconds), len(sizes), len(kinds[0]))  # (rounds, sizes, kinds)
        logs = np.log(timed[..., 1] / timed[..., 0])  # because a slow moment multiplies times
        slower += [Estimate.of(values) for values in logs.T.tolist()]
        memory = {name: [peak_bytes(pair[name]) for pair in kinds] for name in kinds[0]}
        dot, additive = memory.values()
        larger += [more / less for more, less in zip(additive, dot, strict=True)]
        curves = [
            mean_curve(name, (1000 * timed[..., n]).T.tolist()) for n, name in enumerate(kinds[0])
        ]
        megabytes = {name: [count / 1e6 for count in counts] for name, counts in memory.items()}
        panels += [
            SizePanel(axis, sizes, tuple(curves), "milliseconds"),
            SizePanel(axis, sizes, _curves(megabytes), "megabytes"),
        ]
    slower.sort()
    times = np.exp([estimate.value for estimate in slower])
    surely = math.exp(min(estimate.interval[0] for estimate in slower))
    where = ["Where the ratio is smallest", *["At another size"] * (len(slower) - 1)]
    beyond = [np.subtract(estimate.interval, math.log(_MUCH)).tolist() for estimate in slower]
    return Measured(
        [sign((low, high)) for low, high in beyond],
        [
            f"{at}, additive attention takes {say_times(ratio, 'as long as dot products')}."
            for at, ratio in zip(where, slower, strict=True)
        ],
        f"Additive attention takes {min(times):.1f} to {max(times):.1f} times as long as "
        f"dot-product attention. The smallest lower limit of the 95% intervals is {surely:.1f}; "
        f"the claim holds if it is above {_MUCH:g}. Additive attention takes {min(larger):.1f} to "
        f"{max(larger):.1f} times the memory. Forward passes with {_HEADS} heads were timed in "
        f"{_ROUNDS} rounds on this machine. Sequences have {_LENGTHS[2]} positions where d_k "
        f"varies, and d_k is {_D_MODEL} where their length varies. Each additive score needs d_k "
        "sums, which are computed for a few queries at a time, in at most "
        f"{MOST_NUMBERS * 4 / 1e6:.0f} MB. Above this limit, memory for the sums no longer grows. "
        "The ratio of memory is then smaller, so it does not decide the claim.",
        tuple(panels),
    )


def _scores(n: int, d_k: int) -> dict[str, Callable[[], object]]:
    """Prepare attention over n positions with both score functions."""
    query, key, value = torch.randn(3, 1, _HEADS, n, d_k).unbind(0)
    return {
        "dot product": partial(scaled_dot_product_attention, query, key, value),
        "additive": partial(additive_attention, query, key, value, torch.randn(_HEADS, d_k)),
    }


def measure_parallel() -> Measured:
    """Count the sequential products of each layer, and time layers on equally many positions."""
    lengths, width = (16, 64, 256, 1024), 2 * _D_MODEL
    names = tuple(KINDS)
    chains = {
        name: [float(count_products(name, LayerSizes(n, width)).chain) for n in lengths]
        for name in names
    }
    layers = [
        partial(build_layer(name, LayerSizes(n, width)).eval(), _wide(_POSITIONS // n, n))
        for name in names
        for n in lengths
    ]
    seconds = _in_turn(layers)
    timed = seconds.reshape(len(seconds), len(names), len(lengths))
    ratios = timed[..., -1] / timed[..., 0]
    slower = {name: Estimate.of(ratios[:, n].tolist()) for n, name in enumerate(names)}
    growth = {name: counts[-1] / counts[0] for name, counts in chains.items()}
    times = lengths[-1] // lengths[0]
    curves = tuple(
        mean_curve(name, (1000 * timed[:, n]).T.tolist()) for n, name in enumerate(names)
    )
    counted = (
        f"In sequences {times} times as long, the number of sequential matrix products is "
        f"{_as_many(growth['recurrent'])} in a recurrent layer"
    )
    return Measured(
        [
            growth["recurrent"] > times / 2
            and growth["self-attention"] == growth["convolution"] == 1
        ],
        [f"{counted}."],
        f"{counted}, as its equations say. It is "
        f"{_as_many(growth['self-attention'])} in self-attention and "
        f"{_as_many(growth['convolution'])} in a convolution. If the same number of positions "
        f"({_POSITIONS:,}) is split into fewer, longer sequences, times change by these factors "
        f"({_ROUNDS} rounds on this machine, 95% intervals): "
        + ", ".join(f"{name} {estimate}" for name, estimate in slower.items())
        + ". The times do not decide the claim. Self-attention needs more multiplications per "
        "position in longer sequences. In recurrence, each step waits for the previous step. The "
        "cost of waiting depends on how many products a machine computes at the same time"
        f"{_no_cost(slower['recurrent'])}.",
        (
            SizePanel(
                "positions of a sequence",
                lengths,
                _curves(chains),
                "sequential matrix products",
            ),
            SizePanel("positions of a sequence", lengths, curves, "milliseconds"),
        ),
    )


def _no_cost(slower: Estimate) -> str:
    """Return a remark if sequential products cost no measurable time, else an empty string."""
    return "" if slower.interval[0] > 1 else ". Here, waiting took no measurable time"


def _as_many(times: float) -> str:
    return "unchanged" if times == 1 else f"{times:.0f} times as large"


def _wide(batch: int, time: int) -> Tensor:
    """Draw random states, and repeat their features to double the width."""
    x = _states(batch, time)
    return torch.cat((x, x), dim=2)  # (batch, time, width)


def _states(batch: int, time: int) -> Tensor:
    """Draw random states of sentences that differ in mean and scale, as in real text."""
    generator = torch.Generator().manual_seed(batch)
    x = torch.randn(batch, time, _D_MODEL, generator=generator)
    return x * torch.linspace(0.5, 2, batch).view(-1, 1, 1) + torch.linspace(-1, 1, batch).view(
        -1, 1, 1
    )


def _in_turn(functions: Sequence[Callable[[], object]]) -> Float[np.ndarray, "rounds functions"]:
    """Time functions in rounds, and return their seconds."""
    with torch.inference_mode():
        return np.array(time_in_turns(functions, _ROUNDS, _LEAST))


def _curves(values: dict[str, list[float]]) -> tuple[SizeCurve, ...]:
    return tuple(SizeCurve(name, tuple(numbers)) for name, numbers in values.items())
