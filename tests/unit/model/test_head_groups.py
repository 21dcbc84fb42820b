"""Heads that share keys and values: beside NumPy, torch and attention with repeated weights."""

import numpy as np
import pytest
import torch
from torch import nn

from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.model.attention import MultiHeadAttention
from heedful.model.flops import RowLengths
from heedful.model.graphed import can_record
from heedful.model.head_groups import check_groups, group_heads, repeat_heads
from heedful.model.known_layers import is_known
from heedful.model.layout import causal_mask
from heedful.model.packed import why_not_packed
from tests.oracles.numpy_attention import NumpyAttention
from tests.support.models import batch, small


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize("is_cross", [False, True])
def test_it_is_the_attention_of_numpy(kv_heads, is_cross):
    torch.manual_seed(4)
    module = MultiHeadAttention(12, 4, d_k=4, d_v=3, bias=False, kv_heads=kv_heads).double()
    query, key, value = np.split(
        module.qkv_proj.weight.detach().numpy(), np.cumsum(module.widths[:2])
    )
    mixed = module.out_proj.weight.detach().numpy()
    oracle = NumpyAttention(query, key, value, mixed, 4, kv_heads=kv_heads)
    x = torch.randn(1, 6, 12, dtype=torch.float64)
    memory = torch.randn(1, 9, 12, dtype=torch.float64) if is_cross else x
    found, _ = module(x, memory, None if is_cross else causal_mask(6))
    expected = oracle(x[0].numpy(), memory[0].numpy(), not is_cross)
    np.testing.assert_allclose(found[0].detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("kv_heads", [1, 2])
def test_values_and_gradients_are_those_of_torchs_grouped_attention(kv_heads):
    torch.manual_seed(5)
    module = MultiHeadAttention(24, 4, kv_heads=kv_heads).double()
    x = torch.randn(2, 7, 24, dtype=torch.float64, requires_grad=True)
    found, _ = module(x, x, causal_mask(7))
    projected = zip(
        module.qkv_proj(x).split(module.widths, -1), (4, kv_heads, kv_heads), strict=True
    )
    query, key, value = (
        part.unflatten(-1, (heads, -1)).transpose(1, 2) for part, heads in projected
    )
    fused = nn.functional.scaled_dot_product_attention
    context = fused(query, key, value, is_causal=True, enable_gqa=True)
    expected = module.out_proj(context.transpose(1, 2).flatten(2))
    torch.testing.assert_close(found, expected)
    upstream = torch.randn_like(found)
    inputs = (x, *module.parameters())
    for one, other in zip(
        *(torch.autograd.grad(out, inputs, upstream) for out in (found, expected)), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_a_search_keeps_the_few_heads_alone():
    model = small(heads=4, attention={"kv_heads": 2})
    source, _ = batch()
    with torch.inference_mode():
        _, state = model.step(model.start(model.encode(source)), torch.full((3,), 2))
    assert state.memory[0].keys.shape == (3, 2, 7, 4)
    assert state.cache.layers[0].values.size(1) == 2


def test_parameters_and_operations_shrink():
    model, plain = small(heads=4, attention={"kv_heads": 1}), small(heads=4)
    shapes = {n: tuple(p.shape) for n, p in model.named_parameters() if "qkv_proj.weight" in n}
    assert len(shapes) == 6 and {*shapes.values()} == {(16 + 2 * 4, 16)}
    lengths = RowLengths.unpadded([5])
    fewer = plain.encoder.flops(lengths) - model.encoder.flops(lengths)
    assert fewer == 2 * 5 * 2 * (2 * 12 * 16)  # 2 layers, 5 positions, rows of W^K and W^V
    own, memory = (m.decoder.flops(lengths, lengths) for m in (model, plain))
    assert memory.memory - own.memory == fewer


def test_recorded_graphs_and_packed_rows_have_it_and_compiled_layers_do_not():
    model = small(attention={"kv_heads": 1})
    assert can_record(model) and why_not_packed(model) == ""
    assert not is_known(model.encoder)
    assert is_known(small(attention={"kv_heads": 2}).encoder)  # as many as heads


def test_heads_are_repeated_and_grouped_in_order():
    x = torch.arange(4.0).view(1, 1, 4)
    assert repeat_heads(x, 2, 4).tolist() == [[[0, 1, 0, 1, 2, 3, 2, 3]]]
    assert repeat_heads(x, 2, 2) is x
    queries = torch.arange(8.0).view(1, 4, 2, 1)
    assert group_heads(queries, 2)[0, :, :, 0].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert group_heads(queries, 4) is queries


def test_groups_of_different_sizes_are_refused():
    assert (check_groups(8, None, "additive"), check_groups(8, 2, "scaled")) == (8, 2)
    with pytest.raises(SettingError, match="`kv_heads` must divide heads=8"):
        MultiHeadAttention(16, 8, kv_heads=3)
    with pytest.raises(SettingError, match="`score` must be scaled or unscaled"):
        MultiHeadAttention(16, 8, kv_heads=2, score="additive")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            ["model.attention.kv_heads=3"],
            "`model.attention.kv_heads` must divide `model.heads`, 4, but got 3.",
        ),
        (
            ["model.attention.kv_heads=2", "model.decoder_heads=1"],
            "`model.attention.kv_heads` must divide `model.decoder_heads`, 1, but got 2",
        ),
        (
            ["model.attention.kv_heads=1", "model.attention.score=additive"],
            "`model.attention.score` must be scaled or unscaled",
        ),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_refused(settings, words):
    with pytest.raises(SettingError) as caught:
        load_config("tiny", settings)
    assert words in str(caught.value)
