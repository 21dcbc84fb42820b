"""Encoders and decoders of any family combine, and a Transformer is one of the combinations."""

import pytest
import torch

from heedful.config.model import ModelConfig
from heedful.errors import ArgumentError
from heedful.families.build import build_model
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.halves import Memory
from heedful.model.transformer import Transformer
from tests.support.models import batch, small

START = {"recurrent": "bridge", "transformer": "mean"}
FAMILIES = [pytest.param("recurrent", marks=pytest.mark.family("recurrent")), "transformer"]


def mixed(encoder, decoder):
    table = {"encoder_hidden_size": 8, "start": START[encoder]}
    own = {"recurrent": table} if "recurrent" in (encoder, decoder) else {}
    return small(encoder=encoder, decoder=decoder, **own)


@pytest.mark.parametrize("encoder", FAMILIES)
@pytest.mark.parametrize("decoder", FAMILIES)
def test_every_family_meets_every_other(encoder, decoder):
    model = mixed(encoder, decoder)
    source, target = batch()
    assert isinstance(model, Transformer) == (encoder == decoder == "transformer")
    assert (model.source_positions is None) == (encoder == "recurrent")
    memory = model.encode(source)
    assert isinstance(memory, Memory) and memory.states.shape == (3, 7, 16)
    assert len(memory.final) == (2 if encoder == "recurrent" else 0)
    states = model.states(source, target)
    states.sum().backward()
    unused = [name for name, w in model.named_parameters() if w.grad is None]
    assert unused == ["output.weight"] * ("output.weight" in dict(model.named_parameters()))
    with torch.no_grad():
        state = model.start(memory)
        for place in range(5):
            out, state = model.step(state, target[:, place])
            torch.testing.assert_close(out, states[:, place], atol=1e-5, rtol=1e-5)
        assert (state.sentences, state.length) == (3, 5)
    found = model.attention(source, target)
    assert len(found.cross) == (2 if decoder == "transformer" else 1)
    assert len(found.encoder) == (2 if encoder == "transformer" else 0)


def test_a_model_is_made_of_its_parts():
    ours = small()
    parts = EncoderDecoder(
        ours.embed_source,
        ours.embed_target,
        ours.source_positions,
        ours.target_positions,
        ours.encoder,
        ours.decoder,
        ours.output,
    ).eval()
    assert parts(*batch()).equal(ours(*batch()))


# Layers, widths and vocabularies as published; the sums are the publications' own.
PUBLISHED = {
    "Joey NMT, IWSLT14, words": (
        22_048_256,
        (32_009, 22_822, 256, 1, 1),
        {"score": "general", "start": "last"},
    ),
    "Joey NMT, IWSLT15 en-vi": (
        13_701_120,
        (17_191, 7_709, 128, 1, 1),
        {"hidden_size": 512, "start": "zero"},
    ),
}


@pytest.mark.family("recurrent")
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sizes(name):
    expected, (source, target, width, encoder, decoder), choices = PUBLISHED[name]
    config = ModelConfig(
        encoder="recurrent",
        decoder="recurrent",
        d_model=width,
        encoder_layers=encoder,
        decoder_layers=decoder,
        tie_embeddings="none",
        recurrent=choices,
    )
    with torch.device("meta"):
        model = build_model(config, source, target, max_length=9)
    assert sum(weight.numel() for weight in model.parameters()) == expected


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shape", [(0, 5), (2, 0)])
def test_a_batch_without_ids_is_refused(shape, family):
    none, model = torch.zeros(shape, dtype=torch.long), mixed(family, family)
    for call in (lambda: model(none, none), lambda: model.encode(none)):
        with pytest.raises(ArgumentError, match="both at least 1"):
            call()
