"""
Import of a CTranslate2 model as a run.

The folder contains ``model.bin``, vocabularies and, in newer models, ``config.json``. It does not
specify how to split text. Text is split at spaces, unless the user gives a tokenizer or
`heedful export` wrote a tokenizer into the folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from heedful.config.data import DataConfig
from heedful.config.model import ModelConfig
from heedful.config.schema import RunConfig
from heedful.config.search import SearchConfig
from heedful.errors import ExchangeError
from heedful.exchange.ctranslate2.binary import read_model_file
from heedful.exchange.ctranslate2.comparison import CTranslate2Reference
from heedful.exchange.ctranslate2.engine import Engine
from heedful.exchange.ctranslate2.keys import OUTPUT_BIAS, POSITIONS, key_map
from heedful.exchange.ctranslate2.record import ExportRecord
from heedful.exchange.ctranslate2.settings import Variables
from heedful.exchange.ctranslate2.vocabulary import (
    never_written,
    read_vocabularies,
    special_token,
)
from heedful.exchange.find_tokenizer import TextSplitter, first_ids, read_splitter
from heedful.exchange.formats import ModelBundle, ReadOptions, read_settings_file
from heedful.exchange.parity import ReferenceModel
from heedful.families.build import build_model
from heedful.families.keymap import RowMap
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.serialization import RECORD
from heedful.tokenization.subword_model import SubwordModel
from heedful.tokenization.tokenizer import END, Tokenizer

USES = ("tokenizer",)
"""Options of this format."""
# CTranslate2 needs no padding symbol, but its vocabularies often contain one of these names.
_PADDING = ("<blank>", "<pad>", "[PAD]")
# Output bias of a symbol that the original lacks; its probability in the softmax is zero.
_NEVER = -1e4
# CTranslate2's default search settings.
_SEARCH = SearchConfig(
    beam=2,
    length_penalty="power:1",
    stop="as-ctranslate2",
    length_limit_policy="keep",
    min_length=1,
    max_length="256",
    max_source_length=1024,
)


def read(path: Path, options: ReadOptions) -> ModelBundle:
    """Read a folder. Raises `ExchangeError`, which may list several reasons."""
    config = read_config(path)
    file = read_model_file(path / "model.bin")
    variables = Variables(file, config)
    vocabularies = _Vocabularies.of(path, config, variables, options)
    settings = variables.settings()
    advice = "Only models that fit heedful's Transformer can be imported"
    variables.reasons.refuse(f"{path} cannot be imported", advice)
    settings |= {
        "output_bias": settings["output_bias"] or None in vocabularies.origins[1],
        "decoder_start": vocabularies.start,
        "source_end": variables.source_ends,
    }
    model = ModelConfig(**settings)
    tables, biases = vocabularies.rows(filling=0.0), vocabularies.rows(filling=_NEVER)
    positions = variables.weights.get(POSITIONS["encoder"])
    longest = 256 if positions is None else len(positions) - 1
    if model.output_bias and OUTPUT_BIAS not in variables.weights:
        count = tables[1].count
        variables.weights[OUTPUT_BIAS] = torch.zeros(count).numpy()
    with torch.device("meta"):
        ours = build_model(model, *map(len, vocabularies.origins), max_length=longest + 1)
    names = key_map(model, *tables, biases[1])
    weights = names.to_ours(
        {name: torch.from_numpy(array.copy()) for name, array in variables.weights.items()},
        {name: tuple(weight.shape) for name, weight in ours.named_parameters()},
        path / "model.bin",
    )
    data = vocabularies.data_settings(max(1, longest), options)
    return ModelBundle(
        RunConfig(model=model, data=data, search=_search(path, variables.most_positions)),
        weights,
        vocabularies.tokenizer,
        vocabularies.notes,
        names.use_of(variables.weights),
    )


def open_engine(path: Path, model: ModelBundle) -> ReferenceModel:
    """Open the original with CTranslate2, or raise `MissingExtra`."""
    config = read_config(path)
    vocabularies = read_vocabularies(path, config)
    source, target, never = original_ids(path, model, vocabularies)
    engine = Engine(
        path,
        end=special_token(config, "eos_token", "</s>"),
        forbidden=[vocabularies[1][target[number]] for number in never],
        precision="fp32",
    )
    spelled, written = (
        {ours: tokens[theirs] for ours, theirs in origins.items()}
        for origins, tokens in zip((source, target), vocabularies, strict=True)
    )
    is_export = (path / ExportRecord.FILE).is_file()
    positions = ExportRecord.read(path).positions if is_export else None
    return CTranslate2Reference(engine, spelled, written, model, positions)


_Origins = tuple[int | None, ...]


@dataclass(frozen=True)
class _Vocabularies:
    """The tokenizer of both sides, and the row of CTranslate2's table for each of our ids."""

    tokenizer: Tokenizer
    origins: tuple[_Origins, _Origins]
    counts: tuple[int, int]
    shared: bool
    start: str
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls, path: Path, config: Mapping[str, Any], variables: Variables, options: ReadOptions
    ) -> "_Vocabularies":
        """Assign our ids to both vocabularies, or use the tokenizer in the folder."""
        sides = read_vocabularies(path, config)
        counts = variables.rows()
        for tokens, count, side in zip(sides, counts, ("source", "target"), strict=True):
            if len(tokens) != count:
                raise ExchangeError(
                    f"{path} must have a token for each row of the {side} embeddings, but has "
                    f"{len(tokens):,} tokens for {count:,} rows; copy the whole folder."
                )
        special = _special(sides[1], config)
        start = _start(special, config, variables.starts_from_zero)
        if options.tokenizer is None and (path / RECORD).is_file():
            tokenizer = Tokenizer.load(path)
            identical = tuple(range(counts[0])), tuple(range(counts[1]))
            _check_stored_tokenizer(tokenizer, counts, special, sides[1])
            return cls(tokenizer, identical, counts, sides[0] is sides[1], start, ())
        id_mappings = [
            IdMapping.of(first_ids(tokens), _special(tokens, config, special), len(tokens))
            for tokens in (sides[:1] if sides[0] is sides[1] else sides)
        ]
        splitter, content = TextSplitter("spaces")
        if options.tokenizer is not None:
            splitter, content = read_splitter(options.tokenizer)
        models = [ImportedModel(id_mapping, splitter, content) for id_mapping in id_mappings]
        languages = options.source_language, options.target_language
        tokenizer = Tokenizer(*models, source_language=languages[0], target_language=languages[1])
        origins = (id_mappings[0].origins, id_mappings[-1].origins)
        notes = ("The input must be tokens separated by spaces.",) * (splitter == "spaces")
        return cls(tokenizer, origins, counts, len(id_mappings) == 1, start, notes)

    def rows(self, filling: float) -> tuple[RowMap, RowMap]:
        """Build the row maps of both sides."""
        source, target = (
            RowMap(origins, count, filling)
            for origins, count in zip(self.origins, self.counts, strict=True)
        )
        return source, target

    def data_settings(self, longest: int, options: ReadOptions) -> DataConfig:
        """Return the data settings."""
        sizes = self.tokenizer.source_size, self.tokenizer.target_size
        rows = tuple(map(len, self.origins))
        return DataConfig(
            source_language=options.source_language or self.tokenizer.source_language,
            target_language=options.target_language or self.tokenizer.target_language,
            vocabulary_size=max(rows),
            vocabulary_multiple=1 if sizes == rows else max(rows),
            shared_vocabulary=self.shared,
            max_length=longest,
        )


def read_config(path: Path) -> dict[str, Any]:
    """Read ``config.json``; empty if it is missing. Raises `ExchangeError` if it is damaged."""
    file = path / "config.json"
    return read_settings_file(file) if file.is_file() else {}


def _search(path: Path, rows: int | None) -> SearchConfig:
    """Read the folder's search settings, or limit CTranslate2's defaults to the position table."""
    if (path / ExportRecord.FILE).is_file():
        return ExportRecord.read(path).search_within
    if rows is None:
        return _SEARCH
    most = max(1, rows - 1)
    lengths = {"max_length": str(min(256, most)), "max_source_length": min(1024, most)}
    return _SEARCH.model_copy(update=lengths)


def original_ids(
    path: Path, model: ModelBundle, vocabularies: tuple[list[str], list[str]]
) -> tuple[dict[int, int], dict[int, int], list[int]]:
    """Map our ids to CTranslate2's on both sides; list our ids that no translation may contain."""
    is_own_tokenizer = _contains_tokenizer(path, model.tokenizer)
    source, target = (
        {n: n for n in range(len(tokens))} if is_own_tokenizer else _origins(subwords, len(tokens))
        for subwords, tokens in zip(model.tokenizer.models, vocabularies, strict=True)
    )
    forbidden = model.config.search.forbidden_ids
    never = never_written(1 + max(target), model.tokenizer.target_size, forbidden)
    return source, target, [number for number in never if number in target]


def _origins(model: SubwordModel, rows: int) -> dict[int, int]:
    """Map our ids to CTranslate2's; they are equal unless the subword model was imported."""
    if not isinstance(model, ImportedModel):
        return {number: number for number in range(rows)}
    origins = enumerate(model.id_mapping.origins)
    return {ours: theirs for ours, theirs in origins if theirs is not None}


def _contains_tokenizer(path: Path, tokenizer: Tokenizer) -> bool:
    """Return whether a folder contains the given tokenizer."""
    there = (path / RECORD).is_file()
    return there and Tokenizer.load(path).fingerprint == tokenizer.fingerprint


def _special(
    tokens: list[str],
    config: Mapping[str, Any],
    target: Mapping[str, str | None] | None = None,
) -> dict[str, str | None]:
    """Find the special symbols of a side; the source uses the target's start and padding."""
    end = special_token(config, "eos_token", "</s>")
    begin = special_token(config, "decoder_start_token", "<s>")
    if target is None and begin in (end, *_PADDING):
        begin = special_token(config, "bos_token", "<s>")
        begin = "" if begin == end or begin in _PADDING else begin
    pad = next((token for token in _PADDING if token in tokens), None)
    if target is not None:
        begin, pad = target["start"] or "", target["pad"] or pad or ""
    named = {
        "pad": pad,
        "unknown": special_token(config, "unk_token", "<unk>"),
        "start": begin,
        "end": end,
    }
    return {name: token if token and token in tokens else None for name, token in named.items()}


def _start(special: Mapping[str, str | None], config: Mapping[str, Any], from_zero: bool) -> str:
    """Return the value of `model.decoder_start`."""
    begin = special_token(config, "decoder_start_token", "<s>")
    if from_zero:
        return "zero"
    for name, ours in (("end", "end"), ("pad", "pad"), ("start", "symbol")):
        if special[name] == begin:
            return ours
    raise ExchangeError(
        f"the target vocabulary must contain the model's start symbol {begin!r}, but does not; it "
        "belongs to another model."
    )


def _check_stored_tokenizer(
    tokenizer: Tokenizer,
    counts: tuple[int, int],
    special: Mapping[str, str | None],
    target: list[str],
) -> None:
    """Check that the tokenizer in the folder fits the tables and the target vocabulary."""
    sizes = tokenizer.source_size, tokenizer.target_size
    end = special["end"]
    is_large = any(size > count for size, count in zip(sizes, counts, strict=True))
    if is_large or end is None or target.index(end) != END:
        raise ExchangeError(
            f"the tokenizer in {RECORD} must fit the model's embedding tables and end symbol, but "
            f"does not ({sizes[0]:,} and {sizes[1]:,} subwords for {counts[0]:,} and "
            f"{counts[1]:,} rows); remove {RECORD} or give --tokenizer."
        )
