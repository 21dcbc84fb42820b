"""Conversion of another toolkit's model to our settings and weights."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from heedful.config.schema import RunConfig
from heedful.exchange.formats import ModelBundle, Problems
from heedful.families.build import build_model
from heedful.families.foreign import FamilyReader, ForeignModel
from heedful.families.keymap import RowMap
from heedful.families.registry import readers_of
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.tokenizer import Tokenizer


def family_reader(toolkit: str, settings: Mapping[str, Any]) -> FamilyReader | None:
    """Find the reader of the family that the settings describe; None for a Transformer."""
    readers: list[FamilyReader] = readers_of(toolkit)
    return next((reader for reader in readers if reader.is_kind(settings)), None)


def refuse_features(origin: Path, reasons: Problems) -> None:
    """Raise `ExchangeError` if there are reasons against the import of a checkpoint."""
    reasons.refuse(
        f"heedful cannot import the model in {origin}",
        "Only models without these features can be imported; no option changes this",
    )


def bundle_of(
    name: str,
    model: ForeignModel,
    id_mappings: Sequence[IdMapping],
    tokenizer: Tokenizer,
    languages: tuple[str, str],
    search: Mapping[str, Any],
    notes: Sequence[str] = (),
    ignored: tuple[str, ...] = (),
) -> ModelBundle:
    """
    Convert a model; `ExchangeError` names all missing, extra and wrongly shaped tensors.

    `name`: file and toolkit, for messages. `ignored`: name patterns of tensors that are not
    weights, although the toolkit may store them.
    """
    _refuse_impossible_sizes(name, model)
    data = {
        "source_language": languages[0],
        "target_language": languages[1],
        "vocabulary_size": max(tokenizer.source_size, tokenizer.target_size),
        "vocabulary_multiple": 1,
        "shared_vocabulary": tokenizer.shared,
        **({"max_length": model.max_length} if model.max_length else {}),
    }
    tables = {"model": dict(model.settings), "data": data, "search": dict(search)}
    config = RunConfig.from_dict(tables)
    shapes = weight_shapes(config, tokenizer)
    source, target = (RowMap(mapping.origins, mapping.rows) for mapping in id_mappings)
    key_map = model.key_map(shapes, source, target)
    key_map = replace(key_map, ignored=(*key_map.ignored, *ignored))
    theirs = {tensor: torch.from_numpy(array) for tensor, array in model.tensors.items()}
    weights = key_map.to_ours(theirs, shapes, name)
    for weight, factor in model.factors.items():
        weights[weight] *= factor
    remarks = (*notes, *model.notes)
    return ModelBundle(config, weights, tokenizer, remarks, key_map.use_of(theirs))


def _refuse_impossible_sizes(name: str, model: ForeignModel) -> None:
    """Refuse sizes that contradict the tensors, before anything of that size is allocated."""
    widest = max((max(array.shape, default=0) for array in model.tensors.values()), default=0)
    reasons = Problems()
    for sizes, most in ((model.widths, widest), (model.layers, len(model.tensors))):
        for size, value in sizes.items():
            reasons.add_if(not 0 < value <= most, f"{size} is {value:,}")
    reasons.refuse(
        f"{name} gives sizes that its tensors cannot have",
        "Settings and weights belong to different models",
    )


def weight_shapes(config: RunConfig, tokenizer: Tokenizer) -> dict[str, tuple[int, ...]]:
    """List the shapes of our weights by their names, without allocating them."""
    with torch.device("meta"):
        built = build_model(
            config.model,
            tokenizer.source_size,
            tokenizer.target_size,
            max_length=config.data.max_length + 1,
        )
    stored = built.state_dict()
    return {name: tuple(stored[name].shape) for name, _ in built.named_parameters()}
