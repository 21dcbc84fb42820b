"""
Tensor names of Hugging Face's BART, mBART and M2M100 classes.

Layers, tables and the bias of logits are named as in the Marian class. The other tensors are::

    model.{encoder,decoder}.layer_norm              after the last layer (mBART, M2M100)
    model.{encoder,decoder}.layernorm_embedding     of embeddings and positions (BART, mBART)
    model.{encoder,decoder}.embed_positions         learned, from row 2 on (BART, mBART)
"""

from collections.abc import Mapping

from torch import Tensor

from heedful.config.model import ModelConfig
from heedful.exchange.bart.classes import FIRST_POSITION
from heedful.exchange.marian.names import BIAS, HEAD, SHARED, TABLES, TENSOR_NAMES
from heedful.exchange.transformer import layer_entries
from heedful.families.keymap import Entry, KeyMap, RowMap

_SIDES = {"source": "encoder", "target": "decoder"}
# Tables of sinusoids that older versions of M2M100 stored, although the class computes them.
_COMPUTED = ("model.encoder.embed_positions.weights", "model.decoder.embed_positions.weights")
_SOURCE, _TARGET = TABLES["embed_source.weight"], TABLES["embed_target.weight"]


def tied_as(is_tied: bool, tensors: Mapping[str, Tensor]) -> tuple[str, dict[str, str]]:
    """Return the value of `model.tie_embeddings`, and the tensors that hold our tables."""
    shared = next((name for name in (SHARED, _SOURCE, _TARGET, HEAD) if name in tensors), SHARED)
    if is_tied:
        return "all", {"embed_source.weight": shared}
    names = {
        "embed_source.weight": _SOURCE if _SOURCE in tensors else shared,
        "embed_target.weight": _TARGET if _TARGET in tensors else shared,
        "output.weight": HEAD if HEAD in tensors else shared,
    }
    source, target, output = (tensors.get(name) for name in names.values())
    if source is None or target is None or output is None:
        return "all", {"embed_source.weight": shared}
    has_one_input, has_one_side = _alike(source, target), _alike(target, output)
    if has_one_input and has_one_side:
        return "all", {"embed_source.weight": names["embed_source.weight"]}
    if has_one_side:
        del names["output.weight"]
        return "output", names
    if has_one_input:
        del names["embed_target.weight"]
        return "embeddings", names
    return "none", names


def written_tables(tie: str) -> tuple[dict[str, str], dict[str, str]]:
    """
    Name the tensors that hold our tables, and the copies of these tensors that the classes need.

    `tie`: our `model.tie_embeddings`. Unless all tables are tied, the classes store three tables,
    and a fourth that they never use.
    """
    if tie == "all":
        return {"embed_source.weight": SHARED}, {}
    names = dict(
        zip(("embed_source.weight", "embed_target.weight"), (_SOURCE, _TARGET), strict=True)
    )
    if tie == "output":
        return names, {HEAD: _TARGET, SHARED: _SOURCE}
    if tie == "none":
        return {**names, "output.weight": HEAD}, {SHARED: _SOURCE}
    return (
        {"embed_source.weight": _SOURCE, "output.weight": HEAD},
        {_TARGET: _SOURCE, SHARED: _SOURCE},
    )


def bart_map(
    config: ModelConfig, tables: Mapping[str, str], rows: RowMap, positions: int
) -> KeyMap:
    """Build the key map. `positions`: number of used rows in the tables of learned positions."""
    entries = [Entry(ours, (theirs,), rows) for ours, theirs in tables.items()]
    ignored = list(_COMPUTED)
    if config.output_bias:
        entries.append(Entry("output.bias", (BIAS,), RowMap(rows.origins, rows.count, lead=1)))
    else:
        ignored.append(BIAS)
    learned = range(FIRST_POSITION, FIRST_POSITION + positions)
    table = RowMap(tuple(learned), learned.stop)
    for ours, theirs in _SIDES.items():
        for number in range(getattr(config, f"{theirs}_layers")):
            entries += layer_entries(TENSOR_NAMES, theirs, number)
        for part in ("weight", "bias"):
            if config.norm == "pre":
                place = f"model.{theirs}.layer_norm.{part}"
                entries.append(Entry(f"{theirs}.norm.{part}", (place,)))
            if config.embedding_norm:
                place = f"model.{theirs}.layernorm_embedding.{part}"
                entries.append(Entry(f"{ours}_norm.{part}", (place,)))
        if config.positions == "learned":
            place = f"model.{theirs}.embed_positions.weight"
            entries.append(Entry(f"{ours}_positions.weight", (place,), table))
    unused = [name for name in (SHARED, *TABLES.values()) if name not in tables.values()]
    if config.tie_embeddings == "all":
        copies = dict.fromkeys(unused, tables["embed_source.weight"])
    else:
        copies, ignored = {}, [*ignored, *unused]
    return KeyMap(tuple(entries), tuple(ignored), copies)


def _alike(first: Tensor, second: Tensor) -> bool:
    """Return whether two tables are equal."""
    return first.shape == second.shape and first.equal(second)
