"""Encoders that average or sum: for every decoder, without padding, whatever the order of words."""

import pytest
import torch

from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.families.pooled.encoder import PooledEncoder
from heedful.model.flops import RowLengths
from heedful.model.halves import SourceEncoder
from heedful.model.weights import parameter_count
from tests.support.families import cases
from tests.support.models import batch, small

POOLINGS = ("average", "sum")
DECODERS = cases(
    {
        "transformer": {},
        "recurrent": {"decoder": "recurrent", "recurrent": {"start": "mean"}},
        "convs2s": {"decoder": "convs2s", "convs2s": {"decoder_layers": "2x(16,3)"}},
    }
)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_every_position_has_the_mean_or_the_sum_of_the_words(pooling):
    encoder = PooledEncoder(4, pooling, 0.5).eval()
    x = torch.randn(2, 3, 4)
    memory = encoder.encode(
        x, torch.tensor([[True, True, True], [True, False, False]])[:, None, None]
    )
    whole = x[0].sum(0) / (3 if pooling == "average" else 1)
    for place in range(3):
        torch.testing.assert_close(memory.states[0, place], whole)
        torch.testing.assert_close(memory.states[1, place], x[1, 0])
    assert isinstance(encoder, SourceEncoder) and encoder.flops(RowLengths.padded([3, 1])) == 0


@pytest.mark.parametrize("decoder", DECODERS.values(), ids=DECODERS)
@pytest.mark.parametrize("pooling", POOLINGS)
def test_any_decoder_reads_it(pooling, decoder):
    model = small(encoder=pooling, **decoder)
    source, target = batch()
    with torch.no_grad():
        whole = model.states(source, target)
        torch.testing.assert_close(model.states(source[2:, :2], target[2:])[0], whole[2])
        torch.testing.assert_close(model.states(source[:1].flip(1), target[:1])[0], whole[0])
        state = model.start(model.encode(source))
        for position in range(target.size(1)):
            states, state = model.step(state, target[:, position])
            torch.testing.assert_close(states, whole[:, position], atol=1e-5, rtol=1e-4)
        weights = model.attention(source, target)
    assert not weights.encoder
    for cross in weights.cross:
        torch.testing.assert_close(cross[0], torch.full_like(cross[0], 1 / 7))


def test_it_has_no_weights_and_its_table_is_learned():
    model = small(encoder="average", tie_embeddings="output")
    decoder = parameter_count(model.decoder)
    assert parameter_count(model) == decoder + 2 * 20 * 16
    source, target = batch()
    (model.states(source, target) * torch.randn(16)).sum().backward()
    used = model.embed_source.weight.grad.any(dim=1)
    assert {*used.nonzero().flatten().tolist()} == {*source.flatten().tolist()} - {0}


def test_layers_of_the_encoder_are_refused():
    with pytest.raises(SettingError, match="encoder_layers` applies only if"):
        load_config("paper-base", ["model.encoder=average", "model.encoder_layers=2"])


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_transformer_s_decoder_needs_residuals(pooling):
    with pytest.raises(SettingError, match="would not depend on its input"):
        load_config("tiny", [f"model.encoder={pooling}", "model.residuals=false"])
    load_config("tiny", [f"model.encoder={pooling}"])


@pytest.mark.family("recurrent")
def test_a_recurrent_decoder_begins_with_zeros_or_a_mean():
    with pytest.raises(
        SettingError, match=r"must be zero or mean if `model\.decoder` is recurrent"
    ):
        load_config("paper-base", ["model.encoder=sum", "model.decoder=recurrent"])
    chosen = ["model.encoder=sum", "model.decoder=recurrent", "model.recurrent.start=mean"]
    assert load_config("paper-base", chosen).model.encoder == "sum"
