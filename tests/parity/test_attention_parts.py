"""Today's parts of attention, beside those of transformers and torch: values and gradients."""

import pytest
import torch
from torch import nn
from transformers.models.llama.modeling_llama import (
    LlamaAttention,
    LlamaConfig,
    LlamaRotaryEmbedding,
)
from transformers.models.marian.modeling_marian import MarianAttention, MarianConfig
from transformers.models.phi.modeling_phi import PhiAttention, PhiConfig
from transformers.models.qwen3.modeling_qwen3 import (
    Qwen3Attention,
    Qwen3Config,
    Qwen3RotaryEmbedding,
)
from transformers.models.seamless_m4t_v2.modeling_seamless_m4t_v2 import (
    SeamlessM4Tv2Config,
    SeamlessM4Tv2ConformerSelfAttention,
)
from transformers.models.swinv2.modeling_swinv2 import Swinv2Config, Swinv2SelfAttention
from transformers.models.vits.modeling_vits import VitsAttention, VitsConfig

from heedful.model.attention import MultiHeadAttention
from heedful.model.head_norms import HeadNorms
from heedful.model.layout import causal_mask


def copy_weights(ours, theirs, out="o_proj"):
    """Give their projections the weights of ours, which are stacked."""
    names = ("q_proj", "k_proj", "v_proj")
    parts = zip(names, *(x.split(ours.widths) for x in ours.qkv_proj.parameters()), strict=True)
    for name, weight, bias in parts:
        getattr(theirs, name).weight.data.copy_(weight)
        getattr(theirs, name).bias.data.copy_(bias)
    getattr(theirs, out).load_state_dict(ours.out_proj.state_dict())


def gradients_of(out, module, x, upstream):
    """Gradients of the input and of all weights."""
    found = torch.autograd.grad(out, (x, *module.parameters()), upstream)
    return found[0], dict(zip(dict(module.named_parameters()), found[1:], strict=True))


def alike(ours, theirs, run_theirs, out="o_proj", length=11):
    """Compare contexts and gradients of causal self-attention in double precision."""
    torch.manual_seed(2)
    ours, theirs = ours.double(), theirs.double()
    nn.init.normal_(ours.qkv_proj.bias)
    copy_weights(ours, theirs, out)
    x = torch.randn(2, length, ours.d_model, dtype=torch.float64, requires_grad=True)
    mask = causal_mask(length)
    found, _ = ours(x, x, mask)
    hidden = torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, float("-inf"))
    expected = run_theirs(x, hidden)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)  # their angles are fp32
    upstream = torch.randn_like(found)
    d_x, own = gradients_of(found, ours, x, upstream)
    their_d_x, other = gradients_of(expected, theirs, x, upstream)
    torch.testing.assert_close(d_x, their_d_x, atol=1e-5, rtol=1e-5)
    for end in ("weight", "bias"):
        stacked = torch.cat([other[f"{name}_proj.{end}"] for name in "qkv"])
        torch.testing.assert_close(own[f"qkv_proj.{end}"], stacked, atol=1e-5, rtol=1e-5)
        mixed = other[f"{out}.{end}"]
        torch.testing.assert_close(own[f"out_proj.{end}"], mixed, atol=1e-5, rtol=1e-5)
    return own, other


def settings_of(**changes):
    return {
        **{"hidden_size": 24, "num_attention_heads": 4, "attention_bias": True},
        **{"head_dim": 6, "attn_implementation": "eager", "num_key_value_heads": 4, **changes},
    }


@pytest.mark.family("rotary")
@pytest.mark.parametrize("base", [10000.0, 30.0])
def test_rotary_positions_are_llamas(base):
    from heedful.families.rotary.rotation import RotaryPositions

    ours = MultiHeadAttention(24, 4)
    ours.rotation = RotaryPositions(6, base)
    config = LlamaConfig(
        **settings_of(rope_parameters={"rope_type": "default", "rope_theta": base})
    )
    theirs, turn = LlamaAttention(config, 0), LlamaRotaryEmbedding(config)

    def run(x, mask):
        return theirs(x, turn(x, torch.arange(x.size(1))[None]), mask)[0]

    alike(ours, theirs, run)


@pytest.mark.family("shaw")
def test_vectors_of_distances_added_to_keys_are_those_of_seamless():
    """Its speech encoder has Shaw's vectors for keys alone, so ours for values are zero."""
    from heedful.families.shaw.vectors import DistanceVectors

    torch.manual_seed(3)
    ours = MultiHeadAttention(24, 4).double()
    ours.relation = DistanceVectors(6, 6, max_distance=3).double()
    nn.init.normal_(ours.relation.key_vectors)
    config = SeamlessM4Tv2Config(
        hidden_size=24,
        speech_encoder_attention_heads=4,
        speech_encoder_dropout=0.0,
        position_embeddings_type="relative_key",
        left_max_position_embeddings=3,
        right_max_position_embeddings=3,
    )
    config._attn_implementation = "eager"
    theirs = SeamlessM4Tv2ConformerSelfAttention(config).double()
    names = ("linear_q", "linear_k", "linear_v")
    nn.init.normal_(ours.qkv_proj.bias)
    for name, *parts in zip(
        names, *(x.split(ours.widths) for x in ours.qkv_proj.parameters()), strict=True
    ):
        for parameter, part in zip(getattr(theirs, name).parameters(), parts, strict=True):
            parameter.data.copy_(part)
    theirs.linear_out.load_state_dict(ours.out_proj.state_dict())
    theirs.distance_embedding.weight.data.copy_(ours.relation.key_vectors)
    x = torch.randn(2, 9, 24, dtype=torch.float64, requires_grad=True)
    (found, weights), (expected, their_weights) = ours(x, x, need_weights=True), theirs(x)
    torch.testing.assert_close(weights, their_weights)
    torch.testing.assert_close(found, expected)
    upstream = torch.randn_like(found)
    own = torch.autograd.grad(found, (x, ours.relation.key_vectors), upstream)
    other = torch.autograd.grad(expected, (x, theirs.distance_embedding.weight), upstream)
    torch.testing.assert_close(own, other)


@pytest.mark.family("shaw")
@pytest.mark.parametrize("is_causal", [False, True])
def test_vectors_of_distances_added_to_keys_and_values_are_those_of_vits(is_causal):
    """No vector there reaches beyond the window, so no sentence here is longer."""
    from heedful.families.shaw.vectors import DistanceVectors

    torch.manual_seed(3)
    ours = MultiHeadAttention(24, 4).double()
    ours.relation = DistanceVectors(6, 6, max_distance=8).double()
    config = VitsConfig(hidden_size=24, num_attention_heads=4, window_size=8, use_bias=True)
    theirs = VitsAttention(config).double().eval()
    nn.init.normal_(ours.qkv_proj.bias)
    copy_weights(ours, theirs, "out_proj")
    tables = ours.relation.key_vectors, ours.relation.value_vectors
    their_tables = theirs.emb_rel_k, theirs.emb_rel_v
    for table, their_table in zip(tables, their_tables, strict=True):
        nn.init.normal_(table)
        their_table.data.copy_(table)
    x = torch.randn(2, 9, 24, dtype=torch.float64, requires_grad=True)
    mask = causal_mask(9) if is_causal else torch.ones(1, 1, 9, 9, dtype=torch.bool)
    hidden = torch.zeros(2, 1, 9, 9, dtype=torch.float64).masked_fill(~mask, float("-inf"))
    found, weights = ours(x, x, mask, need_weights=True)
    expected, their_weights = theirs(x, attention_mask=hidden, output_attentions=True)
    torch.testing.assert_close(weights, their_weights)
    torch.testing.assert_close(found, expected)
    upstream = torch.randn_like(found)
    own = torch.autograd.grad(found, (x, *tables, *ours.out_proj.parameters()), upstream)
    other = torch.autograd.grad(
        expected, (x, *their_tables, *theirs.out_proj.parameters()), upstream
    )
    for mine, yours in zip(own, other, strict=True):
        torch.testing.assert_close(mine, yours.view_as(mine))


@pytest.mark.family("qk_layer_norm")
def test_layer_norms_of_queries_and_keys_are_those_of_phi():
    from heedful.families.qk_layer_norm.norm import build_qk_norm

    ours = MultiHeadAttention(24, 4)
    ours.norms = HeadNorms(build_qk_norm, 6, 1e-3)
    config = PhiConfig(
        hidden_size=24, num_attention_heads=4, qk_layernorm=True, layer_norm_eps=1e-3
    )
    config._attn_implementation = "eager"
    theirs = PhiAttention(config, 0)
    for norm, name in ((ours.norms.query, "q_layernorm"), (ours.norms.key, "k_layernorm")):
        nn.init.normal_(norm.weight)
        getattr(theirs, name).weight.data.copy_(norm.weight)

    def run(x, mask):
        still = torch.ones(1, x.size(1), theirs.rotary_ndims, dtype=x.dtype)
        return theirs(x, (still, 0 * still), mask)[0]

    own, other = alike(ours, theirs, run, "dense")
    for mine, yours in (("norms.query", "q_layernorm"), ("norms.key", "k_layernorm")):
        torch.testing.assert_close(
            own[f"{mine}.weight"], other[f"{yours}.weight"], atol=1e-5, rtol=1e-5
        )


@pytest.mark.family("qk_l2_norm")
def test_queries_and_keys_of_length_one_are_those_of_swin():
    """Each head has a scale there, the logarithm of ours; no window has a position of its own."""
    from heedful.families.qk_l2_norm.norm import UnitLength

    torch.manual_seed(3)
    ours = MultiHeadAttention(24, 4, bias=False).double()
    ours.norms = HeadNorms(UnitLength, 6, 1e-12).double()
    ours.norms.query.weight.data.fill_(5.0)
    config = Swinv2Config(qkv_bias=False, attention_probs_dropout_prob=0.0)
    theirs = Swinv2SelfAttention(config, 24, 4, window_size=3).double()
    ours.out_proj.weight.data.copy_(torch.eye(24))  # theirs is in another module
    nn.init.zeros_(theirs.continuous_position_bias_mlp[2].weight)
    parts = ours.qkv_proj.weight.split(ours.widths)
    for linear, part in zip((theirs.query, theirs.key, theirs.value), parts, strict=True):
        linear.weight.data.copy_(part)
    scales = ours.norms.query.weight, ours.norms.key.weight
    theirs.logit_scale.data.fill_(scales[0].item() * scales[1].item() / 6**0.5).log_()
    x = torch.randn(2, 9, 24, dtype=torch.float64, requires_grad=True)
    (found, weights), (expected, their_weights) = (
        ours(x, x, need_weights=True),
        theirs(x, output_attentions=True),
    )
    torch.testing.assert_close(weights, their_weights)
    torch.testing.assert_close(found, expected)
    upstream = torch.randn_like(found)
    d_x, d_weight, *d_scales = torch.autograd.grad(
        found, (x, ours.qkv_proj.weight, *scales), upstream
    )
    their_parts = (theirs.query.weight, theirs.key.weight, theirs.value.weight)
    their_d_x, d_logit, *d_parts = torch.autograd.grad(
        expected, (x, theirs.logit_scale, *their_parts), upstream
    )
    torch.testing.assert_close(d_x, their_d_x)
    torch.testing.assert_close(d_weight, torch.cat(d_parts))
    for d_scale, own_scale in zip(d_scales, scales, strict=True):
        torch.testing.assert_close(d_scale * own_scale, d_logit.sum().view(1))


@pytest.mark.family("qk_norm", "rotary")
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_norms_of_queries_and_keys_and_heads_that_share_keys_are_those_of_qwen(kv_heads):
    """Norms stand before the turn, as there."""
    from heedful.families.qk_norm.norm import build_qk_norm
    from heedful.families.rotary.rotation import RotaryPositions

    ours = MultiHeadAttention(24, 4, kv_heads=kv_heads)
    ours.norms, ours.rotation = HeadNorms(build_qk_norm, 6, 1e-3), RotaryPositions(6)
    config = Qwen3Config(**settings_of(num_key_value_heads=kv_heads), rms_norm_eps=1e-3)
    theirs, turn = Qwen3Attention(config, 0), Qwen3RotaryEmbedding(config)
    for norm, name in ((ours.norms.query, "q_norm"), (ours.norms.key, "k_norm")):
        nn.init.normal_(norm.weight)
        getattr(theirs, name).weight.data.copy_(norm.weight)

    def run(x, mask):
        return theirs(x, turn(x, torch.arange(x.size(1))[None]), mask)[0]

    own, other = alike(ours, theirs, run)
    for mine, yours in (("norms.query", "q_norm"), ("norms.key", "k_norm")):
        torch.testing.assert_close(
            own[f"{mine}.weight"], other[f"{yours}.weight"], atol=1e-5, rtol=1e-5
        )


def thinned(*, kv_heads=4):
    """An attention in training that drops a quarter of its weights, which is exact in binary."""
    torch.manual_seed(2)
    module = MultiHeadAttention(24, 4, kv_heads=kv_heads, dropout=0.25).double().train()
    nn.init.normal_(module.qkv_proj.bias)
    x = torch.randn(2, 9, 24, dtype=torch.float64, requires_grad=True)
    return module, x


def run_twice(module, x, source, mask):
    """The contexts of both kernels, which drop the same weights, and where weights remain."""
    contexts = []
    for need_weights in (False, True):
        torch.manual_seed(9)
        context, weights = module(x, source, mask, need_weights)
        contexts.append(context)
    seen = 1 if mask is None else mask.expand(weights.shape).double().mean()
    assert 0.15 * seen < seen - (weights != 0).double().mean() < 0.35 * seen
    torch.testing.assert_close(*contexts)
    return contexts[0], weights.detach() != 0


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("is_causal", [False, True])
def test_dropped_weights_have_the_context_and_gradients_of_torch(is_causal, kv_heads):
    """torch's attention reads which weights ours has dropped, and scales the others itself."""
    ours, x = thinned(kv_heads=kv_heads)
    found, remaining = run_twice(ours, x, x, causal_mask(9) if is_causal else None)
    stacked = nn.functional.linear(x, *ours.qkv_proj.parameters()).split(ours.widths, dim=-1)
    parts = (part.unflatten(-1, (-1, 6)).transpose(1, 2) for part in stacked)
    attend = torch.ops.aten._scaled_dot_product_attention_math
    context, _ = attend(*parts, None, 0.25, is_causal, remaining, enable_gqa=True)
    out = context.transpose(1, 2).flatten(2)
    expected = nn.functional.linear(out, *ours.out_proj.parameters())
    torch.testing.assert_close(found, expected)
    upstream, inputs = torch.randn_like(found), (x, *ours.parameters())
    for mine, yours in zip(
        *(torch.autograd.grad(one, inputs, upstream) for one in (found, expected)), strict=True
    ):
        torch.testing.assert_close(mine, yours)


def test_dropped_weights_of_attention_to_a_source_are_marians(monkeypatch):
    """Its dropout drops the weights that ours has dropped."""
    ours, x = thinned()
    source = torch.randn(2, 6, 24, dtype=torch.float64, requires_grad=True)
    found, remaining = run_twice(ours, x, source, None)
    config = MarianConfig(d_model=24)
    config._attn_implementation = "eager"
    theirs = MarianAttention(24, 4, dropout=0.25, config=config).double().train()
    copy_weights(ours, theirs, "out_proj")
    seen = []

    def drop(weights, p, training):
        seen.append((p, training))
        return torch.where(remaining, weights / (1 - p), 0.0)

    monkeypatch.setattr(nn.functional, "dropout", drop)
    expected = theirs(x, key_value_states=source)[0]
    assert seen == [(0.25, True)]
    torch.testing.assert_close(found, expected)
    upstream = torch.randn_like(found)
    d_x, d_source = torch.autograd.grad(found, (x, source), upstream, retain_graph=True)
    their_d = torch.autograd.grad(expected, (x, source), upstream, retain_graph=True)
    torch.testing.assert_close((d_x, d_source), their_d)
    _, own = gradients_of(found, ours, x, upstream)
    _, other = gradients_of(expected, theirs, x, upstream)
    for end in ("weight", "bias"):
        stacked = torch.cat([other[f"{name}_proj.{end}"] for name in "qkv"])
        torch.testing.assert_close(own[f"qkv_proj.{end}"], stacked)
        torch.testing.assert_close(own[f"out_proj.{end}"], other[f"out_proj.{end}"])
