"""
A mixture of experts: many feed-forward networks; a few of them serve each token.

::

    tokens ── gate ── pairs of token and expert, sorted by expert ── each expert on its rows
                                                                            │
    states ── sum of each token's rows, weighted by the gates ──────────────┘

Shazeer et al. 2017, section 2. Experts take all tokens that the gate gives them: no capacity limit
drops tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.families.experts.gating import BalancedGate, Gate, GroupedGate, NoisyGate, Routing
from heedful.model.feed_forward import FeedForward
from heedful.model.parts import Network

# Weight of a batch in the running load, an average over about the last hundred batches.
_MOMENTUM = 0.01


@dataclass(frozen=True)
class MixtureConfig:
    """Sizes and settings of a mixture."""

    d_model: int
    d_ff: int
    """Inner width of each expert."""
    experts: int
    per_token: int
    """Experts per token; with groups, number of groups per token and of experts in each."""
    gating: Literal["noisy", "balanced"] = "noisy"
    groups: int | None = None
    """Number of groups of a gate on two levels; None means one level."""
    activation: str = "relu"
    sigmoid: bool = False
    """Whether a sigmoid follows the mixture (Shazeer et al. 2017, appendix E)."""
    importance_loss: float = 0.01
    load_loss: float = 0.01


class MixtureOfExperts(Network):
    """A mixture in place of a feed-forward network."""

    running_load: Tensor
    """Running average over training batches of the share of tokens that each expert serves."""

    def __init__(self, config: MixtureConfig) -> None:
        super().__init__()
        self.config = config
        self.gate = _gate(config)
        self.experts = nn.ModuleList(
            FeedForward(config.d_model, config.d_ff, config.activation, bias=False)
            for _ in range(config.experts)
        )
        mean = self.experts_per_token / config.experts
        self.register_buffer("running_load", torch.full((config.experts,), mean))
        self.unserved = 0.0
        """Share of the tokens that no expert took in the last forward pass of training."""

    @property
    def experts_per_token(self) -> int:
        """Number of experts that serve a token; the average for balanced gating."""
        return self.config.per_token ** (1 if self.config.groups is None else 2)

    def forward(
        self,
        x: Float[Tensor, "*batch d_model"],
        real: Bool[Tensor, "*batch"] | None = None,
    ) -> Float[Tensor, "*batch d_model"]:
        """Process each token with its experts; `real`: false at padding, which becomes 0."""
        tokens = x.flatten(0, -2) if real is None else x[real]  # (tokens, d_model)
        routing = self.gate(tokens)
        out = self._apply_experts(tokens, routing)
        if self.config.sigmoid:
            out = torch.sigmoid(out)
        if self.training:
            self._remember(routing, len(tokens))
        if real is None:
            return out.view_as(x)
        return x.new_zeros(x.shape).masked_scatter(real.unsqueeze(-1), out)

    def flops(self, tokens: int) -> int:
        """Count the operations for `tokens` tokens; balanced gates are counted as in training."""
        expert, (gating, pairs) = self.experts[0], self.gate.flops(tokens)
        assert isinstance(expert, FeedForward)
        return gating + pairs * expert.flops()

    @classmethod
    def log_figures(cls, networks: Sequence[Any]) -> dict[str, float]:
        """Return the mean spread of experts' loads, and the largest share of unserved tokens."""
        loads = [mixture.running_load for mixture in networks]
        spreads = [float(load.std(correction=0) / load.mean()) for load in loads]
        figures = {"expert_spread": sum(spreads) / len(spreads)}
        if any(mixture.config.gating == "balanced" for mixture in networks):
            figures["unserved"] = max(mixture.unserved for mixture in networks)
        return figures

    def _apply_experts(self, tokens: Tensor, routing: Routing) -> Tensor:
        """Run each expert on its rows, and sum the outputs for each token."""
        order = routing.experts.argsort(stable=True)  # stable: the same sums in every run
        counts = torch.bincount(routing.experts, minlength=len(self.experts)).tolist()
        # indexing sums gradients in a fixed order; index_select does not on a GPU
        rows = tokens[routing.tokens[order]].split(counts)
        # in training all experts run, so that each has a gradient, even if it is zero
        done = [
            expert(part)
            for expert, part in zip(self.experts, rows, strict=True)
            if self.training or len(part)
        ]
        if not done:
            return torch.zeros_like(tokens)
        weighted = torch.cat(done) * routing.gates[order].unsqueeze(1).to(tokens.dtype)
        return sum_by_token(weighted, routing.tokens[order], len(tokens))

    def _remember(self, routing: Routing, tokens: int) -> None:
        """Store the penalty of a pass, and the load of the experts."""
        self.penalty = routing.penalty
        with torch.no_grad():
            counts = torch.bincount(routing.experts, minlength=len(self.experts))
            self.running_load.lerp_(counts.to(self.running_load) / max(tokens, 1), _MOMENTUM)
            served = torch.bincount(routing.tokens, minlength=tokens) > 0
            self.unserved = 1.0 - float(served.sum()) / max(tokens, 1)


def sum_by_token(
    values: Float[Tensor, "pairs d_model"], tokens: Int[Tensor, " pairs"], count: int
) -> Float[Tensor, "count d_model"]:
    """Sum the rows of each token in a fixed order, so that all runs have equal sums."""
    order = tokens.argsort(stable=True)
    counts = torch.bincount(tokens, minlength=count)
    most = int(counts.max()) if len(tokens) else 0
    is_row = torch.arange(most, device=values.device) < counts.unsqueeze(1)  # (count, most)
    rows = torch.full(is_row.shape, len(values), device=values.device)
    rows = rows.masked_scatter(is_row, order)
    padded = torch.cat([values, values.new_zeros(1, values.size(1))])
    out = values.new_zeros(count, values.size(1))
    for place in range(most):
        out = out + padded[rows[:, place]]
    return out


def _gate(config: MixtureConfig) -> Gate:
    """Build the gate, on one level or two."""

    def level(experts: int) -> NoisyGate | BalancedGate:
        if config.gating == "balanced":
            return BalancedGate(config.d_model, experts, config.per_token)
        losses = config.importance_loss, config.load_loss
        return NoisyGate(config.d_model, experts, config.per_token, *losses)

    groups = config.groups
    if groups is None:
        return level(config.experts)
    return GroupedGate(level(groups), (level(config.experts // groups) for _ in range(groups)))
