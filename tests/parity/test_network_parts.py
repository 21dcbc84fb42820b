"""Gated networks and norms without a mean, beside those of transformers: values and gradients."""

import pytest
import torch
from torch import nn
from transformers.models.llama.modeling_llama import LlamaConfig, LlamaMLP, LlamaRMSNorm
from transformers.models.t5.modeling_t5 import T5LayerNorm

from heedful.model.feed_forward import FeedForward

# Ours, theirs: GEGLU exact and by tanh, SwiGLU, ReGLU (Shazeer 2020).
ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "silu": "silu", "relu": "relu"}


def compare(ours, theirs, x, ours_of):
    """Compare results and gradients in double precision; `ours_of` renames their parameters."""
    found, expected = ours(x), theirs(x)
    torch.testing.assert_close(found, expected)
    upstream = torch.randn_like(found)
    d_x, *own = torch.autograd.grad(found, (x, *ours.parameters()), upstream)
    their_d_x, *other = torch.autograd.grad(expected, (x, *theirs.parameters()), upstream)
    torch.testing.assert_close(d_x, their_d_x)
    names = [name for name, _ in theirs.named_parameters()]
    wanted = ours_of(dict(zip(names, other, strict=True)))
    for mine, yours in zip(own, wanted, strict=True):
        torch.testing.assert_close(mine, yours)


def stacked(parts):
    """Our two parameters from their three."""
    gate_and_up = torch.cat((parts["gate_proj.weight"], parts["up_proj.weight"]))
    return gate_and_up, parts["down_proj.weight"]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_gated_network_is_llamas(activation):
    torch.manual_seed(1)
    ours = FeedForward(12, 20, activation, bias=False, gated=True).double()
    config = LlamaConfig(
        hidden_size=12,
        num_attention_heads=2,
        intermediate_size=20,
        hidden_act=ACTIVATIONS[activation],
    )
    theirs = LlamaMLP(config).double()
    parts = {name: weight.data for name, weight in theirs.named_parameters()}
    for mine, yours in zip((ours.linear1.weight, ours.linear2.weight), stacked(parts), strict=True):
        mine.data.copy_(yours)
    x = torch.randn(2, 5, 12, dtype=torch.float64, requires_grad=True)
    compare(ours, theirs, x, stacked)


@pytest.mark.family("rms_norm")
@pytest.mark.parametrize("kind", [LlamaRMSNorm, T5LayerNorm])
def test_a_norm_without_a_mean_is_that_of_llama_and_t5(kind):
    from heedful.families.rms_norm.norm import build_norm

    # theirs computes in fp32 whatever the type
    ours, theirs = build_norm(12, 1e-3), kind(12, eps=1e-3)
    nn.init.normal_(ours.weight)
    theirs.load_state_dict(ours.state_dict())
    x = (3 * torch.randn(2, 5, 12)).requires_grad_()
    compare(ours, theirs, x, lambda parts: tuple(parts.values()))
