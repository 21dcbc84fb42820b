"""Norms of queries and keys, beside NumPy, from settings and in every kind of attention."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.families.qk_norm.norm import build_qk_norm
from heedful.model.attention import MultiHeadAttention
from heedful.model.graphed import can_record
from heedful.model.head_norms import HeadNorms
from heedful.model.known_layers import is_known
from heedful.model.layout import causal_mask
from heedful.model.packed import why_not_packed
from heedful.model.weights import parameter_count
from tests.oracles.numpy_attention import NumpyAttention
from tests.support.models import batch, small

SETTINGS = {"attention": {"qk_norm": "rms"}}


def attention(score="scaled"):
    torch.manual_seed(4)
    module = MultiHeadAttention(12, 2, d_k=4, d_v=3, bias=False, score=score).double()
    factor = 2.0 if score == "unscaled" else 1.0
    module.norms = HeadNorms(build_qk_norm, 4, 1e-3, factor).double()
    for norm in module.norms.children():
        nn.init.normal_(norm.weight)
    return module


@pytest.mark.parametrize("score", ["scaled", "unscaled"])
@pytest.mark.parametrize("is_cross", [False, True])
def test_it_is_the_attention_of_numpy(score, is_cross):
    module = attention(score)
    query, key, value = np.split(
        module.qkv_proj.weight.detach().numpy(), np.cumsum(module.widths[:2])
    )
    gains = [norm.weight.detach().numpy() for norm in module.norms.children()]
    gains[0] = gains[0] * (1 if score == "scaled" else math.sqrt(4))
    mixed = module.out_proj.weight.detach().numpy()
    oracle = NumpyAttention(query, key, value, mixed, 2, gains=tuple(gains), epsilon=1e-3)
    x = torch.randn(1, 6, 12, dtype=torch.float64)
    memory = torch.randn(1, 9, 12, dtype=torch.float64) if is_cross else x
    found, _ = module(x, memory, None if is_cross else causal_mask(6))
    expected = oracle(x[0].numpy(), memory[0].numpy(), not is_cross)
    np.testing.assert_allclose(found[0].detach().numpy(), expected, atol=1e-12)


def test_longer_queries_and_keys_change_nothing():
    module = attention()
    module.norms = HeadNorms(build_qk_norm, 4, 0.0).double()
    x = torch.randn(2, 5, 12, dtype=torch.float64)
    before, _ = module(x, x)
    with torch.no_grad():
        module.qkv_proj.weight[: sum(module.widths[:2])] *= 7.0
    torch.testing.assert_close(module(x, x)[0], before)


def test_both_attentions_of_every_layer_have_gains_that_learn():
    model = small(**SETTINGS).train()
    gains = {n: p for n, p in model.named_parameters() if ".norms." in n}
    assert len(gains) == 2 * 2 + 2 * 4  # queries and keys of 2 encoder and 2 decoder layers
    assert all(gain.shape == (8,) and (gain == 1).all() for gain in gains.values())
    assert parameter_count(model) == parameter_count(small()) + 12 * 8
    model.states(*batch()).square().sum().backward()
    assert all(gain.grad.abs().sum() > 0 for gain in gains.values())


def test_recorded_graphs_and_packed_rows_have_it_and_compiled_layers_do_not():
    model = small(**SETTINGS)
    assert can_record(model) and why_not_packed(model) == ""
    assert not is_known(model.encoder)


def test_an_unknown_norm_is_refused():
    with pytest.raises(SettingError, match=r"model.attention.qk_norm"):
        load_config("tiny", ["model.attention.qk_norm=batch"])
