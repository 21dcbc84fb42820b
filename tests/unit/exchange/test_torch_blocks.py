"""Conversion of blocks from and to torch keeps outputs and gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from heedful.errors import ExchangeError
from heedful.exchange.torch_block_parts import (
    ATTENTION,
    DECODER_LAYER,
    ENCODER_LAYER,
    activation_name,
    layer_names,
)
from heedful.exchange.torch_blocks import (
    from_torch_attention,
    from_torch_decoder,
    from_torch_encoder,
    from_torch_transformer,
    to_torch_attention,
    to_torch_decoder,
    to_torch_encoder,
    to_torch_transformer,
)
from heedful.model.attention import MultiHeadAttention
from heedful.model.feed_forward import ACTIVATIONS
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Decoder, Encoder
from heedful.model.layout import causal_mask

CLOSE = {"atol": 1e-5, "rtol": 1e-4}
# what torch says of the nested tensors that it takes, or not, where no gradients are asked for
pytestmark = [
    pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning"),
]
SILU = nn.functional.silu


def draw(module, seed=1):
    """Weights of every parameter, the zeros of biases and the ones of norms included."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        noise = torch.randn(parameter.shape, generator=generator) * 0.3
        parameter.data = parameter.data * 0.5 + noise
    return module


def lengths_mask(lengths, longest):
    """True at real tokens, shape (batch, longest)."""
    return torch.arange(longest) < torch.tensor(lengths)[:, None]


def same_gradients(ours, theirs, names):
    for mine, yours in names.items():
        got = dict(ours.named_parameters()).get(mine)
        expected = dict(theirs.named_parameters()).get(yours)
        assert (got is None) == (expected is None), mine
        if got is not None:
            # The bias of the keys has no gradient but what rounding leaves of large sums.
            atol = 1e-4 + 1e-5 * float(expected.grad.abs().max())
            torch.testing.assert_close(got.grad, expected.grad, atol=atol, rtol=1e-3, msg=mine)


def stack_names(parts, layers):
    flat = layer_names(parts)
    return {
        f"layers.{n}.{ours}": f"layers.{n}.{yours}"
        for n in range(layers)
        for ours, yours in flat.items()
    } | {"norm.weight": "norm.weight", "norm.bias": "norm.bias"}


def both_ways(module, there, back):
    """The converted module, and the module converted back."""
    made = there(module)
    return made, back(made)


@settings(max_examples=30)
@given(
    heads=st.integers(1, 5),
    width=st.integers(1, 6),
    queries=st.integers(1, 7),
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    bias=st.booleans(),
    batch_first=st.booleans(),
    seed=st.integers(0, 99),
)
def test_attention_of_any_shape(heads, width, queries, lengths, bias, batch_first, seed):
    theirs = nn.MultiheadAttention(heads * width, heads, bias=bias, batch_first=batch_first)
    draw(theirs, seed)
    ours, again = both_ways(
        theirs, from_torch_attention, lambda m: to_torch_attention(m, batch_first=batch_first)
    )
    torch.manual_seed(seed)
    x = torch.randn(len(lengths), queries, heads * width)
    memory = torch.randn(len(lengths), max(lengths), heads * width)
    real = lengths_mask(lengths, max(lengths))

    def torchs(module):
        sides = [side if batch_first else side.transpose(0, 1) for side in (x, memory, memory)]
        out, weights = module(*sides, key_padding_mask=~real, average_attn_weights=False)
        return out if batch_first else out.transpose(0, 1), weights

    expected, expected_weights = torchs(theirs)
    found, weights = ours(x, memory, real[:, None, None], need_weights=True)
    torch.testing.assert_close(found, expected, **CLOSE)
    torch.testing.assert_close(weights, expected_weights, **CLOSE)
    torch.testing.assert_close(torchs(again)[0], expected, **CLOSE)
    for out in (ours(x, memory, real[:, None, None])[0], expected, torchs(again)[0]):
        (out * out).sum().backward()
    same_gradients(ours, theirs, ATTENTION)
    same_gradients(ours, again, ATTENTION)


@settings(max_examples=25)
@given(
    heads=st.integers(1, 4),
    by_head=st.booleans(),
    by_query=st.booleans(),
    batch=st.integers(1, 3),
    queries=st.integers(1, 6),
    keys=st.integers(1, 8),
    seed=st.integers(0, 999),
)
def test_attention_under_any_mask(heads, by_head, by_query, batch, queries, keys, seed):
    theirs = draw(nn.MultiheadAttention(heads * 4, heads, batch_first=True), seed)
    ours = from_torch_attention(theirs)
    torch.manual_seed(seed)
    mask = torch.rand(batch, heads if by_head else 1, queries if by_query else 1, keys) < 0.5
    mask[..., seed % keys] = True  # a query that may look at nothing has no weights
    x, memory = torch.randn(batch, queries, heads * 4), torch.randn(batch, keys, heads * 4)
    barred = ~mask.expand(batch, heads, queries, keys).flatten(0, 1)
    expected, expected_weights = theirs(
        x, memory, memory, attn_mask=barred, average_attn_weights=False
    )
    found, weights = ours(x, memory, mask, need_weights=True)
    torch.testing.assert_close(found, expected, **CLOSE)
    torch.testing.assert_close(weights, expected_weights, **CLOSE)
    quick, _ = ours(x, memory, mask)
    torch.testing.assert_close(quick, expected, **CLOSE)
    for out in (quick, expected):
        (out * out).sum().backward()
    same_gradients(ours, theirs, ATTENTION)


def torch_transformer(norm, bias, activation, batch_first, epsilon, layers=(2, 3)):
    return nn.Transformer(
        24,
        4,
        *layers,
        40,
        dropout=0.0,
        activation=activation,
        layer_norm_eps=epsilon,
        batch_first=batch_first,
        norm_first=norm == "pre",
        bias=bias,
    )


def run_torch(module, source, target, real):
    """States of torch's model, batch first whatever it likes."""
    sides = (source, target)
    if not module.batch_first:
        sides = tuple(side.transpose(0, 1) for side in sides)
    length = target.size(1)
    out = module(
        *sides,
        tgt_mask=~causal_mask(length)[0, 0],
        src_key_padding_mask=~real,
        memory_key_padding_mask=~real,
    )
    return out if module.batch_first else out.transpose(0, 1)


def run_ours(encoder, decoder, source, target, real):
    mask = real[:, None, None]
    return decoder(target, encoder(source, mask), mask)


@settings(max_examples=25)
@given(
    norm=st.sampled_from(["post", "pre"]),
    bias=st.booleans(),
    activation=st.sampled_from(["relu", "gelu", SILU]),
    batch_first=st.booleans(),
    epsilon=st.sampled_from([1e-5, 1e-6, 0.1]),
    lengths=st.lists(st.integers(1, 8), min_size=1, max_size=4),
    target=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_the_whole_model(norm, bias, activation, batch_first, epsilon, lengths, target, seed):
    theirs = draw(torch_transformer(norm, bias, activation, batch_first, epsilon), seed)
    encoder, decoder = from_torch_transformer(theirs)
    again = to_torch_transformer(encoder, decoder, batch_first=batch_first)
    torch.manual_seed(seed)
    sides = torch.randn(len(lengths), max(lengths), 24), torch.randn(len(lengths), target, 24)
    real = lengths_mask(lengths, max(lengths))
    expected = run_torch(theirs, *sides, real)
    found = run_ours(encoder, decoder, *sides, real)
    back = run_torch(again, *sides, real)
    torch.testing.assert_close(found, expected, **CLOSE)
    torch.testing.assert_close(back, expected, **CLOSE)
    for out in (expected, found, back):
        (out * torch.linspace(-1, 1, 24)).sum().backward()
    for module in (theirs, again):
        same_gradients(encoder, module.encoder, stack_names(ENCODER_LAYER, 2))
        same_gradients(decoder, module.decoder, stack_names(DECODER_LAYER, 3))
    # torch takes another way where no gradients are asked for
    with torch.no_grad():
        quick = run_torch(theirs.eval(), *sides, real)
        torch.testing.assert_close(run_torch(again.eval(), *sides, real), quick, **CLOSE)
        encoder.eval(), decoder.eval()
        torch.testing.assert_close(run_ours(encoder, decoder, *sides, real), quick, **CLOSE)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("bias", [True, False])
def test_our_stacks_in_torch_and_back(norm, bias):
    shape = LayerConfig(24, 40, 4, dropout=0.0, norm=norm, projection_bias=bias, activation="silu")
    encoder, decoder = draw(Encoder(shape, 2)), draw(Decoder(shape, 1))
    theirs = to_torch_transformer(encoder, decoder)
    assert (theirs.encoder.norm is None) == (norm == "post")
    source, target = torch.randn(3, 5, 24), torch.randn(3, 4, 24)
    real = lengths_mask([5, 2, 3], 5)
    expected = run_ours(encoder, decoder, source, target, real)
    torch.testing.assert_close(run_torch(theirs, source, target, real), expected, **CLOSE)
    again = from_torch_transformer(theirs)
    torch.testing.assert_close(run_ours(*again, source, target, real), expected, **CLOSE)
    for mine, yours in zip((encoder, decoder), again, strict=True):
        assert mine.state_dict().keys() == yours.state_dict().keys()
        for name, value in mine.state_dict().items():
            assert torch.equal(value, yours.state_dict()[name])


def test_a_stack_alone_without_a_final_norm():
    layer = nn.TransformerEncoderLayer(12, 3, 20, batch_first=True)
    theirs = draw(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)).eval()
    ours = from_torch_encoder(theirs)
    x = torch.randn(2, 6, 12)
    torch.testing.assert_close(ours(x), theirs(x), **CLOSE)
    assert not ours.training
    decoder = Decoder(LayerConfig(12, 20, 3, dropout=0.0), 2)
    again = from_torch_decoder(to_torch_decoder(draw(decoder)))
    everything = torch.ones(2, 1, 1, 6, dtype=torch.bool)
    expected = decoder(x, x, everything)
    torch.testing.assert_close(again(x, x, everything), expected, **CLOSE)


def test_modes_types_and_frozen_weights_come_along_and_nothing_is_shared():
    theirs = nn.MultiheadAttention(8, 2, dtype=torch.float64).eval()
    theirs.out_proj.weight.requires_grad_(False)
    ours = from_torch_attention(theirs)
    assert ours.qkv_proj.weight.dtype == torch.float64
    assert not ours.training
    assert not ours.out_proj.weight.requires_grad
    assert ours.qkv_proj.weight.requires_grad
    before = theirs.in_proj_weight.clone()
    ours.qkv_proj.weight.data.zero_()
    assert torch.equal(theirs.in_proj_weight, before)


@pytest.mark.parametrize("dropped", [0.0, 0.2])
def test_dropout_of_sub_layers_and_weights_both_ways(dropped):
    shape = LayerConfig(8, 16, 2, dropout=0.3, attention_dropout=dropped)
    theirs = to_torch_transformer(Encoder(shape, 2), Decoder(shape, 1))
    layer, decoding = theirs.encoder.layers[1], theirs.decoder.layers[0]
    assert (layer.dropout1.p, layer.dropout2.p, layer.dropout.p) == (0.3, 0.3, 0.0)
    for attention in (layer.self_attn, decoding.self_attn, decoding.multihead_attn):
        assert attention.dropout == dropped
    encoder, decoder = from_torch_transformer(theirs)
    ours = encoder.layers[0], decoder.layers[0]
    assert [layer.self_residual.dropout.probability for layer in ours] == [0.3, 0.3]
    for attention in (*(layer.self_attention for layer in ours), ours[1].cross_attention):
        assert (attention.dropout is None) == (dropped == 0.0)
        assert attention.dropout is None or attention.dropout.probability == dropped


def test_dropout_of_an_attention_alone():
    ours = from_torch_attention(nn.MultiheadAttention(8, 2, dropout=0.25))
    assert ours.dropout.probability == 0.25
    assert to_torch_attention(ours).dropout == 0.25
    x = torch.randn(1, 3, 8)
    assert not torch.equal(ours(x, x)[0], ours(x, x)[0])  # it acts in training mode
    layer = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.1)
    layer.multihead_attn.dropout = 0.5
    reason = r"sub-layers of it\.layers\.0 differ in attention dropout"
    with pytest.raises(ExchangeError, match=reason):
        from_torch_decoder(nn.TransformerDecoder(layer, 1))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (nn.ReLU(), "relu"),
        (nn.functional.relu, "relu"),
        (nn.GELU(), "gelu"),
        (nn.GELU("tanh"), "gelu_tanh"),
        (nn.SiLU(), "silu"),
        (ACTIVATIONS["gelu_tanh"], "gelu_tanh"),
        (nn.Tanh(), None),
    ],
)
def test_activations_are_recognized(theirs, ours):
    assert activation_name(theirs) == ours


def message_of(function, *modules):
    with pytest.raises(ExchangeError) as caught:
        function(*modules)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_an_attention_that_torch_cannot_express():
    text = message_of(to_torch_attention, MultiHeadAttention(16, 4, d_k=8, d_v=2))
    assert "heads=4 of d_k=8" in text and "heads=4 of d_v=2" in text


def no_norm(width, epsilon):
    del width, epsilon
    return nn.Identity()


def turned(config):
    from heedful.families.rotary.rotation import RotaryPositions

    return RotaryPositions(config.d_model // config.heads, 10_000.0)


def biased(config):
    from heedful.families.relative_buckets.buckets import RelativeBuckets

    return RelativeBuckets(config.heads, 8, 16, True)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            {"kv_heads": 2},
            r"0\.self_attention has kv_heads=2, but torch's attention needs one for each head",
        ),
        ({"qk_norm": no_norm}, r"0\.self_attention\.norms is a HeadNorms"),
        pytest.param(
            *({"rotation": turned}, r"0\.self_attention\.rotation is a RotaryPositions"),
            marks=pytest.mark.family("rotary"),
        ),
        pytest.param(
            *({"score_bias": biased}, r"score_bias is a Relative"),
            marks=pytest.mark.family("relative_buckets"),
        ),
    ],
)
def test_parts_of_later_models_that_torch_does_not_have(settings, reason):
    with pytest.raises(ExchangeError, match=reason):
        to_torch_encoder(Encoder(LayerConfig(16, 24, 4, **settings), 1))


@pytest.mark.parametrize("score", ["unscaled", "additive"])
def test_scores_that_torch_does_not_have(score):
    with pytest.raises(ExchangeError, match=f"it has score={score}, but torch's scores are"):
        to_torch_attention(MultiHeadAttention(12, 3, score=score))


def test_a_window_that_torch_does_not_have():
    stack = Encoder(LayerConfig(12, 24, 3, window=2), 1)
    with pytest.raises(ExchangeError, match="it attends within a window, which torch's layers"):
        to_torch_encoder(stack)


def test_a_torch_attention_that_we_cannot_express():
    odd = nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True, kdim=4, vdim=6)
    text = message_of(from_torch_attention, odd)
    for reason in ("kdim=4", "vdim=6", "add_bias_kv", "add_zero_attn"):
        assert reason in text


def odd_transformer():
    theirs = torch_transformer("post", True, torch.tanh, True, 1e-5)
    theirs.encoder.layers[0].norm1.eps = 0.5
    theirs.encoder.layers[1].self_attn = nn.MultiheadAttention(24, 4, add_zero_attn=True)
    theirs.decoder.norm = nn.RMSNorm(24)
    theirs.decoder.layers[2].multihead_attn = nn.MultiheadAttention(24, 2)
    theirs.decoder.layers[1] = nn.Identity()
    theirs.decoder.layers[0].self_attn = nn.Linear(2, 2)
    return theirs


def test_all_reasons_of_both_stacks_come_at_once():
    text = message_of(from_torch_transformer, odd_transformer())
    for reason in (
        "the activation <built-in method tanh",
        "sub-layers of encoder.layers.0 differ in eps",
        "encoder.layers.1.self_attn has add_zero_attn=True",
        "decoder.layers.0.self_attn is a Linear, not a torch.nn.MultiheadAttention",
        "decoder.layers.1 is a Identity",
        "sub-layers of decoder.layers.2 differ in num_heads",
        "decoder.norm is a RMSNorm",
    ):
        assert reason in text


def test_stacks_that_are_none_or_uneven():
    layers = [nn.TransformerEncoderLayer(8, 2, width, batch_first=True) for width in (16, 24)]
    theirs = nn.TransformerEncoder(layers[0], 2, enable_nested_tensor=False)
    theirs.layers[1] = layers[1]
    assert "differ in shape" in message_of(from_torch_encoder, theirs)
    theirs.layers = nn.ModuleList()
    assert "has no layers" in message_of(from_torch_encoder, theirs)


def test_our_stacks_that_torch_cannot_express():
    wide = Encoder(LayerConfig(12, 16, 2, d_k=4, d_v=6), 2)
    odd = Decoder(LayerConfig(12, 16, 2), 1)
    wide.layers[1].feed_forward = nn.Linear(12, 12)
    odd.layers[0].cross_residual = LayerConfig(12, 16, 2, norm="pre").residual()
    text = message_of(to_torch_transformer, wide, odd)
    for reason in (
        "encoder.layers.0.self_attention has heads=2 of d_k=4",
        "encoder.layers.1.self_attention has heads=2 of d_k=4",
        "encoder.layers.1.feed_forward is a Linear, not a FeedForward",
        "decoder.layers.0 uses PostNorm, PreNorm",
    ):
        assert reason in text
    text = message_of(
        to_torch_transformer,
        Encoder(LayerConfig(12, 16, 2, norm="pre", norm_kind=nn.BatchNorm1d), 1),
        Decoder(LayerConfig(12, 16, 2, norm_kind="none", residuals=False), 1),
    )
    for reason in (
        "encoder.layers.0.self_residual.norm is a BatchNorm1d, not a torch.nn.LayerNorm",
        "encoder.norm is a BatchNorm1d",
        "decoder.layers.0.cross_residual.norm is a Identity",
        "decoder.layers.0.cross_residual adds no residual",
    ):
        assert reason in text
    pair = Encoder(LayerConfig(12, 16, 2), 1), Decoder(LayerConfig(8, 16, 2), 1)
    assert "widths are 12 and 8" in message_of(to_torch_transformer, *pair)
