"""
Tensor names of Hugging Face's Marian class, and shapes implied by its `config.json`.

::

    model.{encoder,decoder}.layers.N.self_attn.{q,k,v,out}_proj     one product of ours for q, k, v
    model.decoder.layers.N.encoder_attn.{q,k,v,out}_proj
    ….{self_attn,encoder_attn,final}_layer_norm, ….fc1, ….fc2
    model.shared | model.{encoder,decoder}.embed_tokens | lm_head   tied in three ways
    final_logits_bias                                               one row

The class is post-norm with biases everywhere; its positions are computed, not stored.
"""

from collections.abc import Collection, Iterator, Mapping

import torch
from torch import Tensor

from heedful.config.model import ModelConfig
from heedful.errors import ExchangeError
from heedful.families.keymap import Entry, KeyMap, RowMap, Stacked
from heedful.model.embedding import grouped_sinusoid

CLASSES = ("MarianMTModel", "MarianTokenizer")
"""Model and tokenizer, as transformers names them."""
SHARED, BIAS, HEAD = "model.shared.weight", "final_logits_bias", "lm_head.weight"
TABLES = {
    "embed_source.weight": "model.encoder.embed_tokens.weight",
    "embed_target.weight": "model.decoder.embed_tokens.weight",
    "output.weight": HEAD,
}
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
EPSILON = 1e-5

# The bias of an unused symbol is a hundred below all others: it vanishes in an fp32 softmax, and
# does not disturb a fine-tuning that smooths labels over all symbols.
_UNUSED = -100.0


def marian_map(
    config: ModelConfig, tables: Mapping[str, str], rows: tuple[RowMap, RowMap]
) -> KeyMap:
    """Build the key map; the output bias has the target's rows, filled for symbols they lack."""
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
            entries += layer_entries(
                f"{side}.layers.{number}", f"model.{side}.layers.{number}", side
            )
    spare, copies = _spare_tables(tables, config.tie_embeddings)
    return KeyMap(tuple(entries), (*POSITIONS, *spare), copies)


def _spare_tables(tables: Mapping[str, str], tie: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """List the unused tables of older checkpoints: names of spare ones, and copies of tied ones."""
    target = tables.get("embed_target.weight", tables["embed_source.weight"])
    unused = [name for name in (SHARED, *TABLES.values()) if name not in tables.values()]
    tied = [name for name in unused if tie == "all" or (tie == "output" and name != SHARED)]
    return tuple(name for name in unused if name not in tied), dict.fromkeys(tied, target)


def layer_entries(ours: str, theirs: str, side: str) -> Iterator[Entry]:
    """Map one layer; BART's classes use the same names."""
    attention = {"self_attention": ("self_attn", "self_residual")}
    if side == "decoder":
        attention["cross_attention"] = ("encoder_attn", "cross_residual")
    pairs = {
        "feed_forward.linear1": "fc1",
        "feed_forward.linear2": "fc2",
        "feed_forward_residual.norm": "final_layer_norm",
    }
    for part in ("weight", "bias"):
        for name, (there, residual) in attention.items():
            inward = tuple(f"{theirs}.{there}.{which}_proj.{part}" for which in "qkv")
            yield Entry(f"{ours}.{name}.qkv_proj.{part}", inward, Stacked(count=3))
            outward = (f"{theirs}.{there}.out_proj.{part}",)
            yield Entry(f"{ours}.{name}.out_proj.{part}", outward)
            norm = (f"{theirs}.{there}_layer_norm.{part}",)
            yield Entry(f"{ours}.{residual}.norm.{part}", norm)
        for name, there in pairs.items():
            yield Entry(f"{ours}.{name}.{part}", (f"{theirs}.{there}.{part}",))


def tied_as(tie: str, tensors: Collection[str]) -> dict[str, str]:
    """Find the tensors that hold the tables; a tied table may have any of its names."""
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
                f"{name} must contain the sinusoids that the class computes, sines before cosines, "
                "but has other positions; this is another kind of model."
            )


def unused_bias(bias: Tensor | None) -> float:
    """Return the bias of a symbol that has a row only in our tables, such as padding."""
    lowest = 0.0 if bias is None or not bias.numel() else float(bias.float().min())
    return min(lowest, 0.0) + _UNUSED
