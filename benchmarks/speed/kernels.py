"""Comparison of compiled and plain torch functions of training, alone and in a whole step."""

import statistics
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from benchmarks.speed.context import Context
from benchmarks.speed.turns import in_turn
from heedful.experiments.process import torch_threads
from heedful.kernels import dropout as compiled_dropout
from heedful.kernels.attention import Packing, native_short_attention, plain_short_attention
from heedful.kernels.dropout import Dropout
from heedful.model.layout import causal_mask

_HEADS, _D_K = 4, 64  # as in the recipe `small`
_LONGEST, _SHORTEST = 45, 8
_WAYS = ("compiled", "plain")


def kernels(context: Context) -> dict[str, Any]:
    """Time attention and dropout, compiled and plain, in turns, and then complete steps."""
    precisions = (torch.bfloat16, torch.float32)
    with torch_threads(context.threads) as threads:
        functions = [row for precision in precisions for row in _functions(precision, context)]
    steps = {name: _steps(name, context) for name in ("small", "multi30k")}
    return {"functions": functions, "threads": threads, "steps": steps}


def _functions(precision: torch.dtype, context: Context) -> list[dict[str, Any]]:
    """Time the forward and backward passes of both functions in a precision."""
    torch.manual_seed(1)
    rows = context.size(4, 280)
    lengths = (torch.rand(rows) ** 2 * 30 + _SHORTEST).int()  # mostly short, as in real text
    lengths[0] = _LONGEST
    real = torch.arange(_LONGEST) < lengths[:, None]  # (rows, time)
    packing = Packing.of(real)
    tokens = len(packing.places)
    mask = real[:, None, None] & causal_mask(_LONGEST)
    qkv = torch.randn(1, tokens, 3 * _HEADS * _D_K).to(precision).requires_grad_()
    x, y = (torch.randn(tokens, _HEADS * _D_K).to(precision).requires_grad_() for _ in range(2))
    dropout = Dropout(0.1).train()

    def attend(function: Callable[..., Tensor]) -> Callable[[], Tensor]:
        return lambda: function(qkv, None, mask, _HEADS, _D_K, (packing, packing))

    def and_back(forward: Callable[[], Tensor]) -> Callable[[], None]:
        def both() -> None:
            out = forward()
            out.backward(torch.ones_like(out))

        return both

    def thin_plainly() -> Tensor:
        with patch.object(compiled_dropout, "native_products", lambda: None):
            return dropout.add(x, y)

    pairs = {
        "attention of a layer": (attend(native_short_attention), attend(plain_short_attention)),
        "dropout and sum": (lambda: dropout.add(x, y), thin_plainly),
    }
    return [
        {
            "function": name,
            "precision": str(precision).removeprefix("torch."),
            "tokens": tokens,
            **in_turn(
                {way: and_back(work) for way, work in zip(_WAYS, pair, strict=True)},
                turns=context.size(2, 10 * context.rounds),
            ),
        }
        for name, pair in pairs.items()
    ]


def _steps(recipe: str, context: Context) -> dict[str, Any]:
    """Time steps of 4,000 tokens per side with and without compiled functions, in turns."""
    tokens, steps = context.size((200, 1), (4000, 5))
    words = ("train", recipe, "--batch-tokens", tokens, "--steps", steps, "--only", "heedful")
    seconds: dict[str, list[float]] = {"compiled": [], "plain": []}
    for _ in range(context.rounds):
        for name, environment in (("compiled", {}), ("plain", {"HEEDFUL_NATIVE": "0"})):
            (ours,) = context.bench(*words, environment=environment)["measurements"]
            seconds[name].append(ours["seconds"]["median"])
    ratios = [more / less for more, less in zip(*reversed(seconds.values()), strict=True)]
    medians = {name: statistics.median(turns) for name, turns in seconds.items()}
    return medians | {"ratio": statistics.median(ratios), "precision": ours["precision"]}
