"""
Tensor names of Hugging Face's Marian class, and the map from them to our weights.

::

    model.{encoder,decoder}.layers.N.self_attn.{q,k,v,out}_proj     q, k and v are one layer of ours
    model.decoder.layers.N.encoder_attn.{q,k,v,out}_proj
    ….{self_attn,encoder_attn,final}_layer_norm, ….fc1, ….fc2
    model.shared | model.{encoder,decoder}.embed_tokens | lm_head   tied in three ways
    final_logits_bias                                               one row

The class is post-norm and has biases in all layers; its positions are computed, not stored.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from heedful.config.model import ModelConfig
from heedful.errors import ExchangeError
from heedful.exchange.fairseq.files import TENSOR_NAMES as FAIRSEQ_NAMES
from heedful.exchange.transformer import layer_entries
from heedful.families.keymap import Entry, KeyMap, RowMap
from heedful.model.embedding import grouped_sinusoid

CLASSES = ("MarianMTModel", "MarianTokenizer")
"""Names of the model and tokenizer classes in transformers."""
SHARED, BIAS, HEAD = "model.shared.weight", "final_logits_bias", "lm_head.weight"
TABLES = {
    "embed_source.weight": "model.encoder.embed_tokens.weight",
    "embed_target.weight": "model.decoder.embed_tokens.weight",
    "output.weight": HEAD,
}
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
TENSOR_NAMES = replace(
    FAIRSEQ_NAMES,
    encoder_layer="model.encoder.layers.{}",
    decoder_layer="model.decoder.layers.{}",
)
"""Tensor names of fairseq and of BART's classes, with the prefixes of Marian's layers."""

# The bias of an unused symbol is lower than all other biases by 100. So its probability in an fp32
# softmax is zero, and label smoothing over all symbols does not disturb fine-tuning.
_UNUSED = -100.0


def marian_map(
    config: ModelConfig, tables: Mapping[str, str], rows: tuple[RowMap, RowMap]
) -> KeyMap:
    """Build the key map; rows that the output bias lacks are filled with a low value."""
    source, target = rows
    bias = RowMap(target.origins, target.count, target.filling, lead=1)
    plain = (RowMap(source.origins, source.count), RowMap(target.origins, target.count))
    entries = [
        Entry(ours, (theirs,), plain[0] if ours == "embed_source.weight" else plain[1])
        for ours, theirs in tables.items()
    ]
    entries.append(Entry("output.bias", (BIAS,), bias))
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for number in range(layers):
            entries += layer_entries(TENSOR_NAMES, side, number)
    spare, copies = _spare_tables(tables, config.tie_embeddings)
    return KeyMap(tuple(entries), (*POSITIONS, *spare), copies)


def _spare_tables(tables: Mapping[str, str], tie: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """List the unused tables of older checkpoints: spare tables, and copies of tied tables."""
    target = tables.get("embed_target.weight", tables["embed_source.weight"])
    unused = [name for name in (SHARED, *TABLES.values()) if name not in tables.values()]
    tied = [name for name in unused if tie == "all" or (tie == "output" and name != SHARED)]
    return tuple(name for name in unused if name not in tied), dict.fromkeys(tied, target)


def tied_as(tie: str, tensors: Collection[str]) -> dict[str, str]:
    """Find the tensors that contain the tables; a tied table may have any of its names."""
    source, target, head = TABLES.values()
    places: dict[str, dict[str, tuple[str, ...]]] = {
        "all": {"embed_source.weight": (SHARED, target, source, HEAD)},
        "output": {"embed_source.weight": (source,), "embed_target.weight": (target, HEAD)},
        "none": {
            "embed_source.weight": (source, SHARED),
            "embed_target.weight": (target, SHARED),
            "output.weight": (head,),
        },
    }
    return {
        ours: next((name for name in names if name in tensors), names[0])
        for ours, names in places[tie].items()
    }


def check_positions(tensors: Mapping[str, Tensor]) -> None:
    """Refuse stored positions that are not the sinusoids that the class computes."""
    for name, table in ((name, tensors[name]) for name in POSITIONS if name in tensors):
        even = table.dim() == 2 and table.size(1) % 2 == 0
        expected = grouped_sinusoid(0, *table.shape) if even else None
        if expected is None or not torch.allclose(table.float(), expected, atol=1e-3):
            raise ExchangeError(
                f"{name} must contain the sinusoids that `MarianMTModel` computes, sines before "
                "cosines, but has other values; this is another kind of model."
            )


def unused_bias(bias: Tensor | None) -> float:
    """Return the bias of a symbol that has a row only in our tables, such as the start symbol."""
    lowest = 0.0 if bias is None or not bias.numel() else float(bias.float().min())
    return min(lowest, 0.0) + _UNUSED
