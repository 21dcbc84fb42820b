"""
The matrix multiplications of a loop over target positions.

Every step of the loop multiplies by the same weights and the same memory. Autograd would compute
their gradients step by step: in each step, it would add a small product to a sum as large as the
weight. Instead `LoopProducts` keeps both factors of each step, and multiplies all of them at once
when the backward pass has reached the first step. `StepProducts` is the plain version.

The matrices of a step are small, so torch's own kernels multiply them; a call of oneDNN costs 0.1
ms.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.kernels.api import bias_gradient, sigmoid_gradient

Queries = Float[Tensor, "rows queries width"]
Memory = Float[Tensor, "sentences source width"]
Scores = Float[Tensor, "rows queries source"]


class StepProducts:
    """
    Matrix multiplications of single steps, with autograd's own gradients.

    `keys` and `values` may have more sentences than `query` or `weights` has rows. The last
    sentences, whose targets have ended, are not read.
    """

    def linear(
        self,
        x: Float[Tensor, "*batch width"],
        weight: Float[Tensor, "out width"],
        bias: Float[Tensor, " out"] | None = None,
    ) -> Float[Tensor, "*batch out"]:
        """Multiply by a weight."""
        return nn.functional.linear(x, weight, bias)

    def compare(self, query: Queries, keys: Memory) -> Scores:
        """Multiply each query by each key of its sentence."""
        return torch.bmm(query, keys[: len(query)].transpose(1, 2))

    def compare_additively(
        self,
        query: Queries,
        keys: Memory,
        energy: Float[Tensor, " width"],
    ) -> Scores:
        """Compute tanh(query + key) times energy, with tanh(x) as 2 sigmoid(2 x) - 1."""
        half = _half_plus_half_tanh(query, keys)  # (rows, queries, source, width)
        return 2 * (half @ energy) - energy.sum()

    def mix(self, weights: Scores, values: Memory) -> Queries:
        """Compute the weighted mean of the values."""
        return torch.bmm(weights, values[: len(weights)])


PLAIN = StepProducts()


class LoopProducts(StepProducts):
    """
    Matrix multiplications of a training loop; gradients of shared tensors are computed only once.

    Each loop has its own object, with one query for each sentence. Shared tensors are recognized by
    Python's `id`, so they must be the same objects at every step.
    """

    def __init__(self) -> None:
        self._shared: dict[tuple[int, type[_Uses]], _Shared] = {}

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        shared = self._share(_WeightUses, weight, bias)
        rows: Tensor = _LinearStep.apply(
            x.reshape(-1, x.size(-1)), shared.tensor, shared.bias, shared.uses
        )
        return rows.view(*x.shape[:-1], weight.size(0))

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        shared = self._share(_MemoryUses, keys)
        return _Compare.apply(query, shared.tensor, shared.uses)

    def compare_additively(self, query: Tensor, keys: Tensor, energy: Tensor) -> Tensor:
        shared = self._share(_KeyUses, keys)
        return _CompareAdditively.apply(query, shared.tensor, energy, shared.uses)

    def mix(self, weights: Tensor, values: Tensor) -> Tensor:
        shared = self._share(_MemoryUses, values)
        return _Mix.apply(weights, shared.tensor, shared.uses)

    def _share(self, kind: "type[_Uses]", tensor: Tensor, bias: Tensor | None = None) -> "_Shared":
        """Find the entry of a shared tensor in this loop, or create it at its first use."""
        key = id(tensor), kind
        if key not in self._shared:
            self._shared[key] = _Shared(kind, tensor, bias)
        return self._shared[key]


class _Shared:
    """A tensor that all steps share, and an autograd node that waits for all their gradients."""

    def __init__(self, kind: "type[_Uses]", tensor: Tensor, bias: Tensor | None) -> None:
        self.uses = kind(tensor.shape)
        self.tensor, self.bias = _Gather.apply(tensor, bias, self.uses)
        self._original = tensor  # kept so that no other tensor gets its id


class _Uses:
    """Factors from each step that the gradient of a shared tensor needs."""

    def __init__(self, shape: torch.Size) -> None:
        self.shape, self.steps = shape, 0
        self.factors: dict[int, tuple[Tensor, Tensor]] = {}

    def begin(self) -> int:
        """Return the index of a new step."""
        self.steps += 1
        return self.steps - 1

    def keep(self, step: int, left: Tensor, right: Tensor) -> None:
        """Keep the two factors of a step's gradient."""
        self.factors[step] = left, right

    def gradients(self) -> tuple[Tensor | None, Tensor | None]:
        """Compute the gradients of the shared tensor and of its bias, and forget the steps."""
        factors, self.factors = self.factors, {}
        return self.multiply(factors) if factors else (None, None)

    def multiply(
        self, factors: dict[int, tuple[Tensor, Tensor]]
    ) -> tuple[Tensor | None, Tensor | None]:
        """Multiply the factors of all steps."""
        raise NotImplementedError


class _WeightUses(_Uses):
    """Uses of a weight: factors of shape (rows, out) and (rows, width)."""

    def multiply(
        self, factors: dict[int, tuple[Tensor, Tensor]]
    ) -> tuple[Tensor | None, Tensor | None]:
        d_out, x = map(torch.cat, zip(*factors.values(), strict=True))
        return torch.mm(d_out.t(), x), bias_gradient(d_out)


class _MemoryUses(_Uses):
    """Uses of a memory: factors of shape (rows, 1, source) and (rows, 1, width)."""

    def multiply(
        self, factors: dict[int, tuple[Tensor, Tensor]]
    ) -> tuple[Tensor | None, Tensor | None]:
        sentences, source, width = self.shape
        first = next(iter(factors.values()))[0]
        lefts = first.new_zeros(sentences, self.steps, source)
        rights = first.new_zeros(sentences, self.steps, width)
        for step, (left, right) in factors.items():
            lefts[: len(left), step], rights[: len(left), step] = left[:, 0], right[:, 0]
        return torch.bmm(lefts.transpose(1, 2), rights), None


class _KeyUses(_Uses):
    """Uses of the keys of additive scores; gradients are large, so each is added to a sum."""

    total: Tensor | None = None
    energy: Tensor | None = None
    """Factor of the final sum."""

    def add(self, step: int, d_inner: Tensor) -> None:
        """Add the gradient of a step, shape (rows, 1, source, width)."""
        if self.total is None or step in self.factors:  # or a second backward pass begins
            self.total, self.factors = d_inner.new_zeros(self.shape), {}
        self.factors[step] = d_inner[:0], d_inner[:0]
        self.total[: len(d_inner)].add_(d_inner[:, 0])

    def gradients(self) -> tuple[Tensor | None, Tensor | None]:
        total, self.total, self.factors = self.total, None, {}
        return None if total is None or self.energy is None else total * self.energy, None


class _Gather(torch.autograd.Function):
    """The identity; its backward pass runs last, and multiplies once for all steps."""

    @staticmethod
    def forward(
        ctx: Any, tensor: Tensor, bias: Tensor | None, uses: _Uses
    ) -> tuple[Tensor, Tensor | None]:
        ctx.uses = uses
        ctx.set_materialize_grads(False)
        return tensor.view_as(tensor), None if bias is None else bias.view_as(bias)

    @staticmethod
    def backward(ctx: Any, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        d_tensor, d_bias = ctx.uses.gradients()
        return d_tensor, d_bias if ctx.needs_input_grad[1] else None, None


class _LinearStep(torch.autograd.Function):
    """x weight^T + bias."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, uses: _Uses) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.uses, ctx.step = uses, uses.begin()
        return nn.functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        d_out = d_out.contiguous()
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            ctx.uses.keep(ctx.step, d_out, x)
        return torch.mm(d_out, weight) if ctx.needs_input_grad[0] else None, None, None, None


class _Compare(torch.autograd.Function):
    """query keys^T, for each sentence."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, uses: _Uses) -> Tensor:
        keys = keys[: len(query)]
        ctx.save_for_backward(query, keys)
        ctx.uses, ctx.step = uses, uses.begin()
        return torch.bmm(query, keys.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, d_scores: Tensor) -> tuple[Tensor | None, ...]:
        query, keys = ctx.saved_tensors
        ctx.uses.keep(ctx.step, d_scores, query)
        return torch.bmm(d_scores, keys), None, None


class _CompareAdditively(torch.autograd.Function):
    """Product of tanh(query + key) and `energy`, for each query and each key of a sentence."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, energy: Tensor, uses: _KeyUses) -> Tensor:
        half = _half_plus_half_tanh(query, keys)  # (rows, 1, source, width)
        ctx.save_for_backward(half, energy)
        ctx.uses, ctx.step, uses.energy = uses, uses.begin(), energy.detach()
        return 2 * (half @ energy) - energy.sum()

    @staticmethod
    def backward(ctx: Any, d_scores: Tensor) -> tuple[Tensor | None, ...]:
        half, energy = ctx.saved_tensors
        # the slope of tanh is 4 half (1 - half); the final sum is multiplied by energy
        d_inner = sigmoid_gradient(4 * d_scores.unsqueeze(3), half)
        d_energy = 2 * (d_scores.flatten() @ half.flatten(0, 2)) - d_scores.sum()
        ctx.uses.add(ctx.step, d_inner)
        return d_inner.sum(2) * energy, None, d_energy, None


def _half_plus_half_tanh(query: Tensor, keys: Tensor) -> Tensor:
    """Compute sigmoid(2 (query + key)): a sigmoid takes a third of the time of a tanh."""
    return torch.add(2 * query.unsqueeze(2), keys[: len(query)].unsqueeze(1), alpha=2).sigmoid_()


class _Mix(torch.autograd.Function):
    """Product of weights and values, for each sentence."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, values: Tensor, uses: _Uses) -> Tensor:
        values = values[: len(weights)]
        ctx.save_for_backward(weights, values)
        ctx.uses, ctx.step = uses, uses.begin()
        return torch.bmm(weights, values)

    @staticmethod
    def backward(ctx: Any, d_context: Tensor) -> tuple[Tensor | None, ...]:
        weights, values = ctx.saved_tensors
        ctx.uses.keep(ctx.step, weights, d_context)
        return torch.bmm(d_context, values.transpose(1, 2)), None, None
