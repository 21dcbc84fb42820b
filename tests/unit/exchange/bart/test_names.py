"""The weights of BART's classes, beside a model in NumPy that reads the same files."""

import numpy as np
import pytest
import torch

from heedful.config.schema import RunConfig
from heedful.exchange.bart.classes import complete, model_settings
from heedful.exchange.bart.names import bart_map, tied_as, written_tables
from heedful.exchange.marian.names import BIAS, HEAD, SHARED
from heedful.exchange.transformer import TensorNames
from heedful.families.build import build_model
from heedful.families.keymap import RowMap
from heedful.model.initialize import initialize
from tests.oracles.numpy_transformer import ACTIVATIONS, LAYOUTS, NumpyTransformer

POSITIONS = 12
ROWS = 10
SIZES = {
    "vocab_size": ROWS,
    "d_model": 8,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 6,
    "decoder_ffn_dim": 10,
    "max_position_embeddings": POSITIONS,
}
# our ids 0 to 3 are their 1, 3, 0 and 2
ORIGINS = (1, 3, 0, 2, *range(4, ROWS))
NAMES = TensorNames(
    encoder_layer="model.encoder.layers.{}",
    decoder_layer="model.decoder.layers.{}",
    encoder_self="self_attn",
    decoder_self="self_attn",
    cross="encoder_attn",
    query="q_proj",
    key="k_proj",
    value="v_proj",
    mixed="out_proj",
    linear1="fc1",
    linear2="fc2",
    encoder_norms=("self_attn_layer_norm", "final_layer_norm"),
    decoder_norms=("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
    encoder_norm="model.encoder.layer_norm",
    decoder_norm="model.decoder.layer_norm",
    source_table="model.encoder.embed_tokens.weight",
    target_table="model.decoder.embed_tokens.weight",
    output_embedding=HEAD,
    output_bias=BIAS,
)
TIES = ("all", "output", "embeddings", "none")


def built(kind, tie="all"):
    """A model with random weights, and the tensors that the class holds."""
    settings = complete({**SIZES, "model_type": kind})
    mine = model_settings(settings, tie, kind != "m2m_100")
    config = RunConfig().with_settings({f"model.{name}": value for name, value in mine.items()})
    model = build_model(config.model, ROWS, ROWS, max_length=POSITIONS)
    initialize(model, 1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            # in single precision, as files have them
            parameter.copy_(parameter + torch.randn(parameter.shape, generator=generator) * 0.3)
    tables, copies = written_tables(tie)
    key_map = bart_map(config.model, tables, RowMap(ORIGINS, ROWS), POSITIONS)
    theirs = key_map.to_theirs(dict(model.named_parameters()))
    theirs |= {copy: theirs[original] for copy, original in copies.items()}
    return model.double().eval(), theirs, config.model


def twin(theirs, config):
    """The model in NumPy."""
    arrays = {name: tensor.double().numpy() for name, tensor in theirs.items()}
    for name in (NAMES.source_table, NAMES.target_table, NAMES.output_embedding):
        arrays.setdefault(name, arrays[SHARED])
    if BIAS in arrays:
        arrays[BIAS] = arrays[BIAS].reshape(-1)

    def positions(side, first, count):
        if config.positions != "learned":
            return LAYOUTS[config.positions](first + config.position_offset, count, config.d_model)
        place = {"source": "encoder", "target": "decoder"}[side]
        return arrays[f"model.{place}.embed_positions.weight"][2 + first :][:count]

    norms = tuple(f"model.{side}.layernorm_embedding" for side in ("encoder", "decoder"))
    scale = config.d_model**0.5 if config.scale_embeddings else 1.0
    return NumpyTransformer(
        arrays,
        NAMES,
        (config.encoder_layers, config.decoder_layers),
        (config.encoder_heads or config.heads, config.decoder_heads or config.heads),
        (config.norm, config.norm),
        config.norm_epsilon,
        ACTIVATIONS[config.activation],
        (scale, scale),
        positions,
        norms if config.embedding_norm else None,
    )


@pytest.mark.parametrize("tie", TIES)
@pytest.mark.parametrize("kind", ["bart", "mbart", "m2m_100"])
def test_the_model_is_that_of_the_class(kind, tie):
    model, theirs, config = built(kind, tie)
    numpy = twin(theirs, config)
    source, target = [4, 9, 5, 5, 6, 3], [2, 4, 7, 5, 9, 9, 4, 8]
    with torch.no_grad():
        states = model.states(torch.tensor([source]), torch.tensor([target]))
        ours = torch.log_softmax(model.project(states), -1)[0].numpy()
    memory = numpy.offer_memory(numpy.encode([ORIGINS[n] for n in source])[None])
    past, wanted = [], []
    for at, token in enumerate(target):
        scores, newer = numpy.step(memory, past, [ORIGINS[token]], at)
        past = newer
        wanted.append(scores[0])
    # tables of sinusoids are in single precision
    np.testing.assert_allclose(ours, np.array(wanted)[:, list(ORIGINS)], atol=2e-6)


@pytest.mark.parametrize("tie", TIES)
def test_tables_come_back_as_they_went(tie):
    model, theirs, config = built("mbart", tie)
    name, tables = tied_as(tie == "all", theirs)
    assert name == tie
    key_map = bart_map(config, tables, RowMap(ORIGINS, ROWS), POSITIONS)
    ours = {name: part.detach() for name, part in model.named_parameters()}
    shapes = {name: tuple(part.shape) for name, part in ours.items()}
    theirs[BIAS] = theirs[BIAS].reshape(1, -1)
    again = key_map.to_ours(theirs, shapes, "there")
    assert again.keys() == ours.keys()
    assert all(again[name].double().equal(ours[name]) for name in ours)
