"""ConvS2S from settings, alone and beside other families."""

import pytest
import torch

from heedful.config.model import ModelConfig
from heedful.families.build import build_model
from heedful.families.convs2s.build import build_decoder, build_encoder
from heedful.model.flops import RowLengths
from heedful.model.initialize import initialize
from heedful.model.weights import parameter_count

SHAPES = {"encoder_layers": "2x(8,3)", "decoder_layers": "(8,3) (6,3)"}
RECURRENT = {"hidden_size": 12, "encoder_hidden_size": 6, "start": "mean"}


def test_settings_become_layers():
    shapes = {**SHAPES, "attention": "2", "out_embed_dim": 5, "weight_norm": False}
    config = ModelConfig(
        encoder="convs2s", decoder="convs2s", d_model=12, tie_embeddings="none", convs2s=shapes
    )
    encoder = build_encoder(config)
    decoder = build_decoder(config, encoder)
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
        pytest.param("convs2s", "recurrent", marks=pytest.mark.family("recurrent")),
        pytest.param("recurrent", "convs2s", marks=pytest.mark.family("recurrent")),
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
    initialize(model, 1)
    if encoder == "convs2s":
        assert model.encoder.wiring.gradient_scale == 1.0
    source, target = torch.tensor([[5, 6, 7], [8, 0, 0]]), torch.tensor([[2, 5], [2, 6]])
    states = model.states(source, target)
    state, steps = model.start(model.encode(source)), []
    for place in range(2):
        out, state = model.step(state, target[:, place])
        steps.append(out)
    torch.testing.assert_close(torch.stack(steps, 1), states)
    torch.testing.assert_close(model.states(source[1:, :1], target[1:]), states[1:])


def test_closed_forms_count_the_weights():
    def norm(inputs, outputs, kernel=1):
        return outputs * kernel * inputs + 2 * outputs  # v, g and b

    config = ModelConfig(encoder="convs2s", decoder="convs2s", d_model=12, convs2s=SHAPES)
    encoder = norm(12, 8) + 2 * norm(8, 16, 3) + norm(8, 12)
    decoder = norm(12, 8) + norm(8, 16, 3) + norm(8, 12, 3) + norm(8, 6) + norm(6, 12)
    attention = norm(8, 12) + norm(12, 8) + norm(6, 12) + norm(12, 6)
    assert parameter_count(build_encoder(config)) == encoder
    built = build_decoder(config, build_encoder(config))
    assert parameter_count(built) == decoder + attention
    one, more = RowLengths.unpadded([1]), RowLengths.unpadded([4])
    flops = build_encoder(config).flops(one)
    assert flops == 2 * (12 * 8 + 2 * 8 * 16 * 3 + 8 * 12)
    own = [built.flops(one, memory).own for memory in (one, more)]
    assert own[1] - own[0] == 3 * 2 * 2 * 2 * 12
