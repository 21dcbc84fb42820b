"""Distributions of initial weights."""

import math

import torch
from torch import Tensor


@torch.no_grad()
def glorot(weight: Tensor, generator: torch.Generator) -> None:
    """Draw uniformly from -b to b; b is sqrt(6 / (fan in + fan out)) (Glorot and Bengio 2010)."""
    bound = math.sqrt(6.0 / sum(weight.shape))
    weight.uniform_(-bound, bound, generator=generator)


@torch.no_grad()
def table(weight: Tensor, generator: torch.Generator) -> None:
    """Draw with standard deviation d_model^-0.5, so that scaled embeddings have deviation 1."""
    weight.normal_(0.0, weight.size(1) ** -0.5, generator=generator)
