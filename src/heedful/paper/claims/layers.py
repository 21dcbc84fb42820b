"""Claims about layers as they are before training."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from heedful.model.additive import additive_attention
from heedful.model.attention import scaled_dot_product_attention
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Encoder
from heedful.model.norm import BatchNorm
from heedful.paper.claims.statement import Checked
from heedful.paper.dependent_products import count_products
from heedful.paper.layer_build import build_layer
from heedful.paper.layer_kinds import LayerSizes
from heedful.visualise.size_curves import SizeCurve, SizePanel

_D_MODEL, _HEADS, _LENGTH = 64, 4, 24
_REPEATS = 5


def check_batch_norm() -> Checked:
    """Normalise one sentence alone and beside others."""
    others = (1, 2, 4, 8, 16, 32)
    norms = {
        "batch norm": BatchNorm(_D_MODEL).train(),
        "layer norm": torch.nn.LayerNorm(_D_MODEL),
    }
    differences: dict[str, list[float]] = {name: [] for name in norms}
    for count in others:
        x = _states(1 + count, _LENGTH)
        for name, norm in norms.items():
            with torch.no_grad():
                apart = (norm(x[:1]) - norm(x)[:1]).abs().max()
            differences[name].append(float(apart))
    holds = min(differences["batch norm"]) > 1e-2 and max(differences["layer norm"]) < 1e-5
    return Checked(
        holds,
        "Beside other sentences a sentence's states change by up to "
        f"{max(differences['batch norm']):.2f} with batch norm, and by at most "
        f"{max(differences['layer norm']):.0e} with layer norm.",
        (SizePanel("other sentences", others, _curves(differences), "largest difference"),),
    )


def check_gradients() -> Checked:
    """Compare the gradient that reaches the input of deep stacks."""
    depths = (1, 2, 4, 8, 16, 32)
    kinds: dict[str, dict[str, Any]] = {
        "residuals and norms": {},
        "residuals alone": {"norm_kind": "none"},
        "norms alone": {"residuals": False},
        "neither": {"norm_kind": "none", "residuals": False},
    }
    norms: dict[str, list[float]] = {name: [] for name in kinds}
    for name, changed in kinds.items():
        for depth in depths:
            torch.manual_seed(depth)
            config = LayerConfig(_D_MODEL, 4 * _D_MODEL, _HEADS, dropout=0.0, **changed)
            x = _states(4, _LENGTH).requires_grad_()
            out = Encoder(config, depth)(x)
            (gradient,) = torch.autograd.grad(out, x, torch.ones_like(out).normal_())
            norms[name].append(float(gradient.norm()))
    kept = {name: found[-1] / found[0] for name, found in norms.items()}
    holds = kept["residuals and norms"] > 1e-2 and kept["neither"] < 1e-6
    return Checked(
        holds,
        f"From 1 to {depths[-1]} layers the gradient at the input changes by a factor of "
        + ", ".join(f"{factor:.1e} with {name}" for name, factor in kept.items())
        + " (weights before training).",
        (SizePanel("layers", depths, _curves(norms), "norm of the gradient"),),
    )


def check_additive_cost() -> Checked:
    """Time both scores on the same queries, keys and values."""
    lengths = (64, 128, 256, 512)
    seconds: dict[str, list[float]] = {"dot product": [], "additive": []}
    energy = torch.randn(_HEADS, _D_MODEL)
    for n in lengths:
        query, key, value = torch.randn(3, 1, _HEADS, n, _D_MODEL).unbind(0)
        kinds = {
            "dot product": partial(scaled_dot_product_attention, query, key, value),
            "additive": partial(additive_attention, query, key, value, energy),
        }
        for name, attend in kinds.items():
            seconds[name].append(1000 * _fastest(attend))
    slower = [
        additive / dot
        for additive, dot in zip(seconds["additive"], seconds["dot product"], strict=True)
    ]
    return Checked(
        min(slower) > 1,
        f"Additive scores take {min(slower):.1f} to {max(slower):.1f} times as long; both keep "
        f"queries x keys weights, and additive ones need {_D_MODEL} sums for each besides.",
        (SizePanel("positions", lengths, _curves(seconds), "milliseconds"),),
    )


def check_parallel() -> Checked:
    """Follow the products that wait for each other, and time equally many positions."""
    lengths, positions, width = (16, 64, 256, 1024), 4096, 2 * _D_MODEL
    chains: dict[str, list[float]] = {
        name: [] for name in ("self-attention", "recurrent", "convolution")
    }
    slower = {}
    for name, chain in chains.items():
        chain.extend(float(count_products(name, LayerSizes(n, width)).chain) for n in lengths)
        seconds = []
        for n in (lengths[0], lengths[-1]):
            layer, x = build_layer(name, LayerSizes(n, width)).eval(), _states(positions // n, n)
            x = torch.cat((x, x), dim=2)  # (sequences, n, width)
            seconds.append(_fastest(partial(layer, x)))
        slower[name] = seconds[1] / seconds[0]
    growth = {name: found[-1] / found[0] for name, found in chains.items()}
    times = lengths[-1] // lengths[0]
    return Checked(
        growth["recurrent"] > times / 2 and growth["self-attention"] == growth["convolution"] == 1,
        f"In sequences {times} times as long, {growth['recurrent']:.0f} times as many products of "
        "a recurrent layer wait for each other, and no more of the others. The same "
        f"{positions:,} positions then take "
        + ", ".join(f"{factor:.1f} times as long by {name}" for name, factor in slower.items())
        + " (this machine, the fastest of five).",
        (
            SizePanel(
                "positions of a sequence",
                lengths,
                _curves(chains),
                "products that wait for each other",
            ),
        ),
    )


def _states(batch: int, time: int) -> Tensor:
    """Draw states whose sentences differ in mean and size, as those of a text do."""
    generator = torch.Generator().manual_seed(batch)
    x = torch.randn(batch, time, _D_MODEL, generator=generator)
    return x * torch.linspace(0.5, 2, batch).view(-1, 1, 1) + torch.linspace(-1, 1, batch).view(
        -1, 1, 1
    )


def _fastest(function: Callable[[], object]) -> float:
    """Return the fewest seconds of some calls."""
    found = []
    with torch.inference_mode():
        function()
        for _ in range(_REPEATS):
            began = time.perf_counter()
            function()
            found.append(time.perf_counter() - began)
    return min(found)


def _curves(values: dict[str, list[float]]) -> tuple[SizeCurve, ...]:
    return tuple(SizeCurve(name, tuple(each)) for name, each in values.items())
