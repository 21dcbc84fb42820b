"""The same weights in torch's own modules give the same outputs and gradients."""

import pytest
import torch
from torch import nn

from heedful.config.model import ModelConfig
from heedful.config.train import TrainConfig
from heedful.families.build import build_model
from heedful.model.attention import MultiHeadAttention
from heedful.model.initialize import initialize
from heedful.model.layout import causal_mask


def copy_attention(ours, theirs):
    theirs.in_proj_weight.data.copy_(ours.qkv_proj.weight)
    theirs.in_proj_bias.data.copy_(ours.qkv_proj.bias)
    theirs.out_proj.load_state_dict(ours.out_proj.state_dict())


def copy_layer(ours, theirs):
    copy_attention(ours.self_attention, theirs.self_attn)
    theirs.linear1.load_state_dict(ours.feed_forward.linear1.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.linear2.state_dict())
    norms = [ours.self_residual.norm, ours.feed_forward_residual.norm]
    if hasattr(ours, "cross_attention"):
        copy_attention(ours.cross_attention, theirs.multihead_attn)
        norms.insert(1, ours.cross_residual.norm)
    for number, norm in enumerate(norms, start=1):
        getattr(theirs, f"norm{number}").load_state_dict(norm.state_dict())


def test_multi_head_attention_is_torchs():
    torch.manual_seed(1)
    ours = MultiHeadAttention(24, 4)
    nn.init.normal_(ours.qkv_proj.bias)
    theirs = nn.MultiheadAttention(24, 4, batch_first=True)
    copy_attention(ours, theirs)
    x, memory = torch.randn(2, 5, 24), torch.randn(2, 7, 24)
    found, weights = ours(x, memory, need_weights=True)
    expected, expected_weights = theirs(x, memory, memory, average_attn_weights=False)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(weights, expected_weights, atol=1e-6, rtol=1e-4)
    masked, _ = ours(x, x, causal_mask(5))
    expected, _ = theirs(x, x, x, attn_mask=~causal_mask(5)[0, 0])
    torch.testing.assert_close(masked, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_transformer_is_torchs(norm, activation):
    config = ModelConfig(
        d_model=24,
        d_ff=40,
        heads=4,
        encoder_layers=2,
        decoder_layers=3,
        norm=norm,
        activation=activation,
        dropout=0.0,
    )
    ours = build_model(config, 30, 30, max_length=9)
    initialize(ours, 1)
    options = {
        "dropout": 0.0,
        "activation": activation,
        "batch_first": True,
        "norm_first": norm == "pre",
        "layer_norm_eps": 1e-6,
    }
    encoder = [nn.TransformerEncoderLayer(24, 4, 40, **options) for _ in range(2)]
    decoder = [nn.TransformerDecoderLayer(24, 4, 40, **options) for _ in range(3)]
    for mine, yours in zip(
        [*ours.encoder.layers, *ours.decoder.layers], encoder + decoder, strict=True
    ):
        copy_layer(mine, yours)

    source = torch.randint(4, 30, (3, 8))
    source[1, 5:] = 0
    target = torch.randint(4, 30, (3, 6))
    padded = source == 0

    def theirs():
        x = ours.embed_source(source) + ours.source_positions(0, 8)
        for layer in encoder:
            x = layer(x, src_key_padding_mask=padded)
        memory = ours.encoder.norm(x)
        y = ours.embed_target(target) + ours.target_positions(0, 6)
        for layer in decoder:
            y = layer(y, memory, tgt_mask=~causal_mask(6)[0, 0], memory_key_padding_mask=padded)
        return ours.decoder.norm(y)

    found, expected = ours.states(source, target), theirs()
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)

    upstream = torch.randn_like(found)
    (embedding,) = torch.autograd.grad(found, ours.embed_source.weight, upstream, retain_graph=True)
    (theirs_embedding,) = torch.autograd.grad(
        expected, ours.embed_source.weight, upstream, retain_graph=True
    )
    torch.testing.assert_close(embedding, theirs_embedding, atol=1e-4, rtol=1e-4)
    for mine, yours in zip(
        [*ours.encoder.layers, *ours.decoder.layers], encoder + decoder, strict=True
    ):
        (one,) = torch.autograd.grad(
            found, mine.self_attention.qkv_proj.weight, upstream, retain_graph=True
        )
        (other,) = torch.autograd.grad(
            expected, yours.self_attn.in_proj_weight, upstream, retain_graph=True
        )
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_the_optimizer_is_torchs_adam():
    from heedful.training.optimizer import MixedPrecisionOptimizer

    torch.manual_seed(1)
    ours, theirs = nn.Linear(5, 4), nn.Linear(5, 4)
    theirs.load_state_dict(ours.state_dict())
    weights = MixedPrecisionOptimizer(ours, "fp32", TrainConfig())
    adam = torch.optim.Adam(theirs.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
    for _ in range(10):
        x = torch.randn(3, 5)
        for model in (ours, theirs):
            model(x).square().sum().backward()
        weights.step(1e-3, 1.0)
        adam.step()
        adam.zero_grad()
    torch.testing.assert_close(ours.weight, theirs.weight, atol=1e-6, rtol=1e-5)
