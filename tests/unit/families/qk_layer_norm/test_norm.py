"""Layer norms of queries and keys, beside their formula and in a model."""

import numpy as np
import torch
from torch import nn

from heedful.config.load import load_config
from heedful.families.qk_layer_norm.norm import build_qk_norm
from heedful.model.weights import parameter_count
from tests.support.models import batch, small


def test_it_is_the_formula():
    norm = build_qk_norm(6, 0.25)
    nn.init.normal_(norm.weight)
    x = torch.randn(3, 5, 6)
    numbers, gain = x.double().numpy(), norm.weight.detach().double().numpy()
    centered = numbers - numbers.mean(axis=-1, keepdims=True)
    wanted = centered / np.sqrt((centered**2).mean(axis=-1, keepdims=True) + 0.25) * gain
    np.testing.assert_allclose(norm(x).detach().numpy(), wanted, atol=1e-6)


def test_gains_of_every_attention_learn_and_there_are_no_biases():
    load_config("tiny", ["model.attention.qk_norm=layer", "model.attention.score=additive"])
    model = small(attention={"qk_norm": "layer"}).train()
    gains = {name: p for name, p in model.named_parameters() if ".norms." in name}
    assert len(gains) == 2 * 2 + 2 * 4 and all(name.endswith("weight") for name in gains)
    assert parameter_count(model) == parameter_count(small()) + 12 * 8
    model.states(*batch()).square().sum().backward()
    assert all(gain.grad.abs().sum() > 0 for gain in gains.values())
