"""Convolutional encoders and decoders from settings, alone and beside other families."""

import pytest
import torch

from heedful.config.bytenet import ByteNetConfig
from heedful.config.model import ModelConfig
from heedful.model.build import build_model, parameter_count
from heedful.model.convolutional.build import (
    bytenet_decoder,
    bytenet_encoder,
    convs2s_decoder,
    convs2s_encoder,
)
from heedful.model.initialise import initialise

SHAPES = {"encoder_layers": "2x(8,3)", "decoder_layers": "(8,3) (6,3)"}
RECURRENT = {"hidden_size": 12, "encoder_hidden_size": 6, "start": "mean"}


def test_settings_become_layers():
    shapes = {**SHAPES, "attention": "2", "out_embed_dim": 5, "weight_norm": False}
    config = ModelConfig(
        encoder="convs2s", decoder="convs2s", d_model=12, tie_embeddings="none", convs2s=shapes
    )
    encoder, decoder = convs2s_encoder(config), convs2s_decoder(config)
    assert encoder.wiring.layers == ((8, 3, 1), (8, 3, 1))
    assert encoder.wiring.gradient_scale == 0.5
    assert (encoder.width, decoder.width) == (12, 5)
    assert decoder.wiring.attending == (False, True)
    assert list(decoder.attention) == ["1"]
    assert not any(name.endswith("gain") for name, _ in decoder.named_parameters())


@pytest.mark.parametrize(
    ("encoder", "decoder"),
    [
        ("convs2s", "transformer"),
        ("transformer", "convs2s"),
        ("convs2s", "recurrent"),
        ("recurrent", "convs2s"),
    ],
)
def test_it_stands_beside_other_families(encoder, decoder):
    tables = {"convs2s": SHAPES}
    if "recurrent" in (encoder, decoder):
        tables["recurrent"] = {
            name: value
            for name, value in RECURRENT.items()
            if name == "hidden_size" or (name == "start") == (decoder == "recurrent")
        }
    config = ModelConfig(
        encoder=encoder,
        decoder=decoder,
        d_model=12,
        dropout=0.0,
        **tables,
        **({"heads": 2, "d_ff": 16} if "transformer" in (encoder, decoder) else {}),
    )
    model = build_model(config, 20, 20, max_length=12).eval()
    initialise(model, 1)
    if encoder == "convs2s":
        assert model.encoder.wiring.gradient_scale == 1.0
    source, target = torch.tensor([[5, 6, 7], [8, 0, 0]]), torch.tensor([[2, 5], [2, 6]])
    states = model(source, target)
    state, steps = model.start(model.encode(source)), []
    for place in range(2):
        out, state = model.step(state, target[:, place])
        steps.append(out)
    torch.testing.assert_close(torch.stack(steps, 1), states)
    torch.testing.assert_close(model(source[1:, :1], target[1:]), states[1:])


def test_closed_forms_count_the_weights():
    def norm(inputs, outputs, kernel=1):
        return outputs * kernel * inputs + 2 * outputs  # v, g and b

    config = ModelConfig(encoder="convs2s", decoder="convs2s", d_model=12, convs2s=SHAPES)
    encoder = norm(12, 8) + 2 * norm(8, 16, 3) + norm(8, 12)
    decoder = norm(12, 8) + norm(8, 16, 3) + norm(8, 12, 3) + norm(8, 6) + norm(6, 12)
    attention = norm(8, 12) + norm(12, 8) + norm(6, 12) + norm(12, 6)
    assert parameter_count(convs2s_encoder(config)) == encoder
    assert parameter_count(convs2s_decoder(config)) == decoder + attention
    flops = convs2s_encoder(config).flops()
    assert flops.each == 2 * (12 * 8 + 2 * 8 * 16 * 3 + 8 * 12)
    assert convs2s_decoder(config).flops().source_pair == 2 * 2 * 2 * 12


def test_the_room_for_the_target_is_made_once():
    bytenet = ByteNetConfig(unfolding_factor=1.5, unfolding_padding="zero")
    config = ModelConfig(encoder="bytenet", decoder="bytenet", d_model=16, bytenet=bytenet)
    encoder = bytenet_encoder(config)
    decoder = bytenet_decoder(config, encoder)
    assert encoder.unfolding is not None and encoder.unfolding.padding is None
    assert decoder.unfolding is None
    assert encoder.sizes.columns == decoder.sizes.columns == 1.5


def test_before_a_decoder_that_attends_there_is_no_room():
    encoder = bytenet_encoder(ModelConfig(encoder="bytenet", d_model=16, heads=2))
    assert encoder.unfolding is None and encoder.sizes.columns == 1.0


def test_sizes_are_those_of_the_settings():
    bytenet = ByteNetConfig(channels=6, encoder_kernel=5, decoder_kernel=2, max_dilation=2)
    config = ModelConfig(
        encoder="bytenet",
        decoder="bytenet",
        d_model=16,
        encoder_layers=3,
        decoder_layers=2,
        dropout=0.3,
        bytenet=bytenet,
    )
    encoder = bytenet_encoder(config)
    sizes = encoder.sizes
    assert (sizes.width, sizes.channels, sizes.kernel) == (16, 6, 5)
    assert (sizes.dilations, sizes.dropout) == ((1, 2, 1), 0.3)
    decoder = bytenet_decoder(config, encoder)
    assert (decoder.sizes.kernel, decoder.sizes.dilations) == (2, (1, 2))
    assert decoder.width == 16 and not decoder.attends
