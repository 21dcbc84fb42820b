"""
The operations that heedful counts are those that torch counts while a model runs.

Of every family and built-in recipe, mixed models too, with padding and without. Deliberately
counted in another way are, besides what `EverythingIsRead` says:

- the gradients of additive scores: with one query a step the one of two products, else both are
  multiplied number by number, which torch does not count;
- the gradients of a memory that a recurrent loop attends to: all steps together are one product,
  for padded targets too, which is not counted.
"""

import math

import numpy as np
import pytest
import torch
from tests.support.families import cases
from tests.support.models import FAMILIES
from tests.support.operations import (
    CountedBatch,
    EverythingIsRead,
    count,
    model_of,
    small_recipes,
)

from heedful.config.model import ModelConfig
from heedful.model.attention import MultiHeadAttention
from heedful.model.contracts import training_flops
from heedful.model.flops import RowLengths

RECIPES = small_recipes()
SIZES = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 2, "decoder_layers": 2}
_DECODER = {"decoder": "recurrent", "recurrent": {"hidden_size": 16, "start": "mean"}}
_CONVS2S = {"encoder_layers": "2x(16,3)", "decoder_layers": "2x(16,3)"}
_LEARNED = {"positions": "learned", "convs2s": _CONVS2S}
MIXED = {
    **FAMILIES,
    "recurrent behind a Transformer": _DECODER,
    "recurrent behind a sum": {"encoder": "sum", **_DECODER},
    "recurrent behind ConvS2S": {"encoder": "convs2s", **_LEARNED, **_DECODER},
    "Transformer behind recurrent": {
        "encoder": "recurrent",
        "recurrent": {"encoder_hidden_size": 8},
    },
    "Transformer behind ByteNet": {"encoder": "bytenet"},
    "Transformer behind ConvS2S": {"encoder": "convs2s", **_LEARNED},
    "Transformer behind an average": {"encoder": "average"},
    "ConvS2S behind a Transformer": {"decoder": "convs2s", **_LEARNED},
    "ByteNet behind a Transformer": {"decoder": "bytenet", "bytenet": {"unfolding_factor": 1.3}},
    "ByteNet behind recurrent": {
        "encoder": "recurrent",
        "decoder": "bytenet",
        "recurrent": {"encoder_hidden_size": 8},
    },
    "ByteNet, summed": {
        "encoder": "bytenet",
        "decoder": "bytenet",
        "bytenet": {"join": "summed", "unfolding_factor": 1.7, "unfolding_offset": 2},
    },
    "without a mask": {"causal_mask": False},
    "batch norm, no biases": {"norm_kind": "batch", "norm": "pre", "projection_bias": False},
    "unscaled": {"attention": {"score": "unscaled"}},
    "additive": {"attention": {"score": "additive"}},
    "in a window": {"attention": {"window": 3}},
    "additive in a window": {"attention": {"window": 4, "score": "additive"}},
    "Fastformer": {"attention": {"encoder": "fastformer", "decoder": "fastformer-linear"}},
    "maps of neighbors": {"attention": {"encoder": "convolution", "window": 3}},
    "balanced experts": {"experts": {"count": 4, "gating": "balanced"}},
    "experts in groups": {"experts": {"count": 8, "groups": 4}},
    "balanced experts in groups": {"experts": {"count": 8, "groups": 4, "gating": "balanced"}},
}
_WIRINGS = {
    "general": {"score": "general", "feed": "none", "readout": "attentional"},
    "scaled": {"score": "scaled", "feed": "context", "feed_layers": "all"},
    "normed-additive": {"score": "normed-additive", "query": "previous", "feed": "readout"},
    "product": {"score": "product", "query": "previous", "feed": "context"},
    "maxout": {"score": "additive", "readout": "maxout", "feed": "readout"},
    "no attention": {"score": "none", "feed": "none", "readout": "state"},
    "GRU": {"cell": "gru", "score": "additive", "query": "previous", "readout": "state-context"},
}
for name, wiring in _WIRINGS.items():
    MIXED[name] = {
        "encoder": "recurrent",
        "decoder": "recurrent",
        "tie_embeddings": "none",
        "recurrent": {"hidden_size": 24, "readout_size": 12, "attention_size": 20, **wiring},
    }
CONFIGS = {
    **RECIPES,
    **{name: ModelConfig(**{**SIZES, **changes}) for name, changes in cases(MIXED).items()},
}
LONG = [name for name in cases(MIXED) if "window" in name or name == "Fastformer"]

pytestmark = pytest.mark.filterwarnings("ignore:TF32")  # torch's own, of switching kernels off


@pytest.fixture
def plain(monkeypatch):
    """The plain ones: torch's counter does not know oneDNN's."""
    monkeypatch.setattr("heedful.kernels.linear._HAS_ONEDNN", False)
    with torch.backends.mkldnn.flags(enabled=False):
        yield


def not_counted(model, source: RowLengths, target: RowLengths) -> int:
    """What torch counts of the gradients, less twice what it counts forwards."""
    decoder, difference = model.decoder, 0
    for name, layer in model.named_modules():
        if isinstance(layer, MultiHeadAttention) and layer.energy is not None:
            queries = source if name.startswith("encoder") else target
            keys = target if "decoder" in name and "self" in name else source
            pairs = int((queries.places * keys.places).sum())
            difference -= 2 * 2 * layer.energy.numel() * pairs
    if type(decoder).__name__ == "RecurrentDecoder" and decoder.attention is not None:
        attention, is_loop = decoder.attention, not decoder._feeds_nothing_back
        queries = target.tokens if is_loop else target.places
        if "additive" in attention.score:
            difference -= 2 * attention.energy.numel() * int((queries * source.places).sum())
        if is_loop:
            additive = "additive" in attention.score
            width = decoder.wiring.memory_width if additive else attention._pair
            padding = int(((target.places - target.tokens) * source.places).sum())
            difference += 2 * width * padding
    return difference


@pytest.mark.parametrize("name", CONFIGS)
def test_operations_are_those_that_torch_counts(name, plain, monkeypatch):
    model, reads = model_of(CONFIGS[name]), EverythingIsRead(monkeypatch)
    for padded in (False, True):
        batch = CountedBatch(padded)
        assert count(batch.forward, model) == model.forward_flops(*batch.lengths)
        expected = training_flops(model, *batch.lengths) + not_counted(model, *batch.lengths)
        assert count(reads.train, batch, model) == expected


@pytest.mark.parametrize("name", LONG)
def test_long_sequences_attend_in_blocks_and_chunks(name, plain):
    model, batch = model_of(CONFIGS[name]), CountedBatch(True, source_time=300, target_time=290)
    assert count(batch.forward, model) == model.forward_flops(*batch.lengths)


@pytest.mark.task("parsing")
@pytest.mark.parametrize("family", FAMILIES)
def test_the_next_word_of_a_parser_is_counted(family, plain):
    from tests.unit.tasks.parsing.test_next_word import SOURCE, TARGET, model_with

    model = model_with(**FAMILIES[family]).train()
    source = RowLengths.padded((SOURCE != 0).sum(1).numpy())
    target = RowLengths.padded(np.full(len(TARGET), TARGET.size(1)))
    found = count(lambda: model(SOURCE, TARGET))
    assert found == model.forward_flops(source, target)


@pytest.mark.parametrize("name", cases(MIXED))
def test_what_a_processor_computes_without_padding_is_counted_so(name, monkeypatch):
    """By oneDNN, whose products are told to torch's counter; attention is not compiled."""

    def linear(x, weight, *_, out_shape=None, **__):
        return 2 * math.prod(x) * weight[0]

    monkeypatch.setattr("heedful.kernels.linear._HAS_ONEDNN", True)
    for module in ("model.flops", "kernels.attention"):
        monkeypatch.setattr(f"heedful.{module}.native_products", lambda: None)
    model, batch = model_of(CONFIGS[name]), CountedBatch(True)
    more = {torch.ops.mkldnn._linear_pointwise: linear}
    assert count(batch.forward, model, more=more) == model.forward_flops(*batch.lengths)


COMPILED = ["transformer", "batch norm", "experts", "unscaled", "in a window", "without a mask"]


@pytest.mark.parametrize("name", [name for name in COMPILED if name in CONFIGS])
def test_compiled_attention_is_counted_as_that_of_each_sentence_alone(name, monkeypatch):
    model, batch = model_of(CONFIGS[name]), CountedBatch(True)
    monkeypatch.setattr("heedful.kernels.linear._HAS_ONEDNN", False)
    alone = sum(count(sentence.forward, model) for sentence in batch.alone())
    with_padding = model.forward_flops(*batch.lengths)
    monkeypatch.setattr("heedful.kernels.linear._HAS_ONEDNN", True)
    monkeypatch.setattr("heedful.model.flops.native_products", lambda: "compiled")
    assert model.forward_flops(*batch.lengths) == alone < with_padding
