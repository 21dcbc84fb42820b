"""Layers that share weights: one module, whose gradients are sums, stored once."""

import copy

import pytest
import torch
from torch import nn

from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.model.flops import RowLengths
from heedful.model.graphed import can_record
from heedful.model.known_layers import is_known
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Decoder, Encoder
from heedful.model.packed import why_not_packed
from heedful.model.weights import named_weights, parameter_count
from tests.support.models import batch, small

CONFIG = LayerConfig(d_model=8, d_ff=12, heads=2, dropout=0.0)
SHARING = {"encoder_layers": 3, "encoder_sharing": "1,2,1", "decoder_sharing": "1,1"}


def test_layers_of_one_number_are_one_module():
    model = small(**SHARING)
    first, second, third = model.encoder.layers
    assert first is third and first is not second
    assert len(model.decoder.layers) == 2 and len({*model.decoder.layers}) == 1
    assert parameter_count(model) == parameter_count(small(encoder_layers=2, decoder_layers=1))
    stored = {name.split(".layers.")[1][0] for name in named_weights(model) if ".layers." in name}
    assert stored == {"0", "1"} and not any("encoder.layers.2" in n for n in named_weights(model))


def test_gradients_are_the_sums_of_those_of_equal_layers():
    torch.manual_seed(1)
    shared, apart = Decoder(CONFIG, 3, (1, 2, 1)).double(), Decoder(CONFIG, 3).double()
    for ours, theirs in zip(shared.layers, apart.layers, strict=True):
        theirs.load_state_dict(ours.state_dict())
    x, memory = torch.randn(2, 5, 8).double(), torch.randn(2, 6, 8).double()
    outputs = [stack(x, memory) for stack in (shared, apart)]
    torch.testing.assert_close(*outputs)
    upstream = torch.randn_like(outputs[0])
    for out in outputs:
        out.backward(upstream)
    sums = [parameter.grad for parameter in shared.layers[0].parameters()]
    first, third = (apart.layers[n].parameters() for n in (0, 2))
    for found, one, other in zip(sums, first, third, strict=True):
        torch.testing.assert_close(found, one.grad + other.grad)


def test_it_is_torchs_layer_applied_twice():
    torch.manual_seed(2)
    ours = Encoder(CONFIG, 2, (1, 1))
    theirs = nn.TransformerEncoderLayer(
        8, 2, 12, dropout=0.0, batch_first=True, layer_norm_eps=CONFIG.norm_epsilon
    )
    layer = ours.layers[0]
    theirs.self_attn.in_proj_weight.data.copy_(layer.self_attention.qkv_proj.weight)
    theirs.self_attn.in_proj_bias.data.copy_(layer.self_attention.qkv_proj.bias)
    theirs.self_attn.out_proj.load_state_dict(layer.self_attention.out_proj.state_dict())
    theirs.linear1.load_state_dict(layer.feed_forward.linear1.state_dict())
    theirs.linear2.load_state_dict(layer.feed_forward.linear2.state_dict())
    x = torch.randn(2, 5, 8, requires_grad=True)
    found, expected = ours(x), theirs(theirs(x))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    upstream = torch.randn_like(x)
    own = torch.autograd.grad(found, (x, layer.feed_forward.linear1.weight), upstream)
    other = torch.autograd.grad(expected, (x, theirs.linear1.weight), upstream)
    torch.testing.assert_close(own, other, atol=1e-5, rtol=1e-4)


def test_a_copy_shares_as_well():
    model = small(**SHARING)
    again = copy.deepcopy(model)
    assert again.encoder.layers[0] is again.encoder.layers[2] is not model.encoder.layers[0]
    torch.testing.assert_close(again.states(*batch()), model.states(*batch()))


def test_operations_are_those_of_all_layers():
    lengths = RowLengths.unpadded([5])
    assert small(**SHARING).encoder.flops(lengths) == small(encoder_layers=3).encoder.flops(lengths)


def test_every_way_to_compute_has_it():
    model = small(**SHARING)
    assert can_record(model) and why_not_packed(model) == "" and is_known(model.encoder)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("model.encoder_sharing=1,1,1", "must have a number for each of 2 layers"),
        ("model.decoder_sharing=2,1", "must number weights from 1, in the order in which layers"),
        ("model.decoder_sharing=1,3", "must number weights from 1, in the order in which layers"),
        ("model.decoder_sharing=1 1", "such as 1,1,2,2"),
    ],
)
def test_what_names_no_weights_is_refused(setting, words):
    settings = ["model.encoder_layers=2", "model.decoder_layers=2", setting]
    with pytest.raises(SettingError) as caught:
        load_config("tiny", settings)
    assert words in str(caught.value)


def test_a_stack_in_python_has_a_number_for_each_layer():
    with pytest.raises(SettingError, match="`sharing` must have a number for each of 3 layers"):
        Encoder(CONFIG, 3, (1, 1))


@pytest.mark.family("experts")
def test_layers_with_other_networks_share_nothing():
    settings = ["model.experts.count=4", "model.encoder_layers=2", "model.encoder_sharing=1,1"]
    with pytest.raises(SettingError, match=r"`model.encoder_sharing` must be empty if some"):
        load_config("tiny", settings)
