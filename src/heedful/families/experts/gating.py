"""
Gates of a mixture of experts: which experts serve a token, and with which weights.

::

    noisy     H(x) = x W_g + N(0, 1) softplus(x W_n); the k largest, softmax over them
    balanced  softmax(x W_g); in training each of n experts takes its best k t / n of t tokens,
              in evaluation a token takes the experts whose weights are above their thresholds
    groups    a gate chooses groups, then a gate of each group chooses its experts

Shazeer et al. 2017: sections 2.1 and 4, appendices A, B and F. The noisy gate does not limit the
number of tokens per expert.
"""

from collections.abc import Iterable
from math import sqrt
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.model.initial_weights import glorot

_LEAST_DEVIATION = 0.01  # as in tensor2tensor: `chance_of_choice` never divides by zero
_EPSILON = 1e-10


class Routing(NamedTuple):
    """Pairs of a token and an expert that serves it, and the penalty for imbalance."""

    tokens: Int[Tensor, " pairs"]
    experts: Int[Tensor, " pairs"]
    gates: Float[Tensor, " pairs"]
    """Weights of the experts; they sum to one per token, or less if a group gives it no expert."""
    penalty: Float[Tensor, ""] | None = None
    """Penalty for imbalance, only in training."""
    load: Float[Tensor, " experts"] | None = None
    """Expected number of tokens per expert if noise is redrawn (appendix A); None without noise."""


class GateFlops(NamedTuple):
    """The operations of gating."""

    operations: int
    """Operations of the gates themselves."""
    pairs: int
    """Number of pairs of a token and an expert that serves it."""


class NoisyGate(nn.Module):
    """Noisy top-k gating (section 2.1); without noise in evaluation."""

    def __init__(
        self,
        d_model: int,
        experts: int,
        per_token: int,
        importance_loss: float = 0.01,
        load_loss: float = 0.01,
    ) -> None:
        super().__init__()
        self.per_token, self.experts = per_token, experts
        self.importance_loss, self.load_loss = importance_loss, load_loss
        # initially zero, so that all experts are equally likely (appendix A)
        self.weight = nn.Parameter(torch.zeros(experts, d_model))
        self.noise_weight = nn.Parameter(torch.zeros(experts, d_model))

    def flops(self, tokens: int) -> "GateFlops":
        """Count the operations for `tokens` tokens; in training the noise has its own weights."""
        maps = 2 if self.training else 1
        return GateFlops(2 * maps * self.weight.numel() * tokens, self.per_token * tokens)

    def forward(self, x: Float[Tensor, "tokens d_model"]) -> Routing:
        """Route each token to its k experts; logits and softmax are in fp32."""
        logits = nn.functional.linear(x.float(), self.weight.float())  # (tokens, experts)
        noisy, load = logits, None
        if self.training:
            raw = nn.functional.linear(x.float(), self.noise_weight.float())
            deviation = nn.functional.softplus(raw) + _LEAST_DEVIATION
            noisy = logits + torch.randn_like(logits) * deviation
            if self.per_token < self.experts:
                load = chance_of_choice(logits, noisy, deviation, self.per_token).sum(dim=0)
        best = noisy.topk(self.per_token, dim=1)
        tokens = torch.arange(len(x), device=x.device).repeat_interleave(self.per_token)
        gates = best.values.softmax(dim=1)
        routing = Routing(tokens, best.indices.flatten(), gates.flatten(), load=load)  # (pairs,)
        return self.balanced(routing, len(x), self.experts) if self.training else routing

    def balanced(self, routing: Routing, tokens: int, experts: int) -> Routing:
        """Add the penalties for unequal importance and load of the experts (section 4)."""
        pairs = routing.tokens, routing.experts
        shares = routing.gates.new_zeros(tokens, experts).index_put(pairs, routing.gates)
        penalty = self.importance_loss * squared_variation(shares.sum(dim=0))
        if routing.load is not None:
            penalty = penalty + self.load_loss * squared_variation(routing.load)
        return routing._replace(penalty=penalty)


class BalancedGate(nn.Module):
    """Strictly balanced gating (appendix F), with learned thresholds for evaluation."""

    def __init__(self, d_model: int, experts: int, per_token: int) -> None:
        super().__init__()
        self.per_token, self.experts = per_token, experts
        self.weight = nn.Parameter(torch.zeros(experts, d_model))
        self.threshold = nn.Parameter(torch.zeros(experts))
        glorot(self.weight.data, torch.Generator().manual_seed(0))

    def initialize(self, generator: torch.Generator) -> None:
        """Draw W_g; if it were zero, all experts would take the same tokens."""
        glorot(self.weight, generator)
        nn.init.zeros_(self.threshold)

    def flops(self, tokens: int) -> "GateFlops":
        """Count the operations for `tokens` tokens in training; in evaluation the number varies."""
        pairs = self.experts * self._tokens_per_expert(tokens)
        return GateFlops(2 * self.weight.numel() * tokens, pairs)

    def _tokens_per_expert(self, tokens: int) -> int:
        """Count the tokens that an expert takes in training."""
        return min(tokens, max(1, round(self.per_token * tokens / self.experts)))

    def forward(self, x: Float[Tensor, "tokens d_model"]) -> Routing:
        """Route tokens to experts; a token that no expert takes has no pair."""
        logits = nn.functional.linear(x.float(), self.weight.float())
        shares = logits.softmax(dim=1)  # (tokens, experts)
        above = shares > self.threshold.float()
        chosen, penalty = above, None
        if self.training:
            best = shares.topk(self._tokens_per_expert(len(x)), dim=0).indices  # (taken, experts)
            chosen = torch.zeros_like(above).scatter(0, best, True)
            # equation 20; only the thresholds get its gradient, so Adam ignores its scale
            distance = shares.detach() - self.threshold.float()
            penalty = ((above.float() - chosen.float()) * distance).sum() / max(len(x), 1)
        gates = shares * chosen
        gates = gates / gates.sum(dim=1, keepdim=True).clamp(min=_EPSILON)
        tokens, experts = chosen.nonzero(as_tuple=True)
        return Routing(tokens, experts, gates[tokens, experts], penalty)


class GroupedGate(nn.Module):
    """Gating on two levels (appendix B): k groups, and k experts in each of them."""

    def __init__(
        self,
        primary: NoisyGate | BalancedGate,
        secondary: Iterable[NoisyGate | BalancedGate],
    ) -> None:
        super().__init__()
        self.primary = primary
        self.secondary = nn.ModuleList(secondary)

    def flops(self, tokens: int) -> "GateFlops":
        """Count the operations for `tokens` tokens that are spread evenly over the groups."""
        gating, pairs = self.primary.flops(tokens)
        groups, parts = len(self.secondary), []
        for number, gate in enumerate(self.secondary):
            assert isinstance(gate, NoisyGate | BalancedGate)
            # each group gets an integer number of tokens; their sum is the number of pairs
            share = pairs * (number + 1) // groups - pairs * number // groups
            parts.append(gate.flops(share))
        return GateFlops(
            gating + sum(part.operations for part in parts), sum(part.pairs for part in parts)
        )

    def forward(self, x: Float[Tensor, "tokens d_model"]) -> Routing:
        """Route each token to the experts that its groups choose."""
        first, experts = self.primary(x), 0
        parts, loads = [], []
        penalty = x.new_zeros((), dtype=torch.float32) if first.penalty is None else first.penalty
        for number, gate in enumerate(self.secondary):
            assert isinstance(gate, NoisyGate | BalancedGate)
            place = (first.experts == number).nonzero().squeeze(1)  # (tokens of the group,)
            rows = first.tokens[place]
            second = gate(x[rows])
            weights = first.gates[place[second.tokens]] * second.gates
            parts.append((rows[second.tokens], second.experts + experts, weights))
            experts += gate.experts
            if second.penalty is not None:
                penalty = penalty + second.penalty * (len(rows) / max(len(x), 1))
            # the expert's share of its group's tokens, times the expected tokens of the group
            share = torch.ones_like(gate.weight[:, 0]).float()
            if second.load is not None:
                share = second.load / max(len(rows), 1)
            loads.append(share * (len(rows) if first.load is None else first.load[number]))
        routing = Routing(*map(torch.cat, zip(*parts, strict=True)))
        if not self.training:
            return routing
        if isinstance(self.primary, BalancedGate):
            return routing._replace(penalty=penalty)
        # noisy gates are balanced by the products of gates and loads of both levels
        return self.primary.balanced(routing._replace(load=torch.cat(loads)), len(x), experts)


Gate = NoisyGate | GroupedGate | BalancedGate


def chance_of_choice(
    logits: Float[Tensor, "tokens experts"],
    noisy: Float[Tensor, "tokens experts"],
    deviation: Float[Tensor, "tokens experts"],
    k: int,
) -> Float[Tensor, "tokens experts"]:
    """
    Compute the probability that an expert is chosen if its own noise is drawn again.

    Equation 9: the probability that its noisy logit exceeds the k-th largest noisy logit of the
    other experts.
    """
    best = noisy.topk(k + 1, dim=1).values  # (tokens, k + 1)
    is_chosen = noisy > best[:, k:]
    threshold = torch.where(is_chosen, best[:, k:], best[:, k - 1 : k])
    return 0.5 * (1 + torch.erf((logits - threshold) / (deviation * sqrt(2))))


def squared_variation(x: Float[Tensor, " experts"]) -> Float[Tensor, ""]:
    """Compute the squared coefficient of variation: variance over squared mean."""
    return x.var(correction=0) / (x.mean().square() + _EPSILON)
