"""
Export of a model to CTranslate2.

Positions become explicit tables; heads with keys and values of different widths are padded. The
folder also contains the tokenizer and the search settings, which
`heedful translate --engine ctranslate2` uses and CTranslate2 itself ignores.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from heedful._version import __version__
from heedful.config.model import ModelConfig
from heedful.config.schema import RunConfig
from heedful.exchange.ctranslate2.binary import Array
from heedful.exchange.ctranslate2.comparison import CTranslate2Reference
from heedful.exchange.ctranslate2.engine import Engine
from heedful.exchange.ctranslate2.keys import (
    OUTPUT_TABLE,
    POSITIONS,
    ROTARY,
    SOURCE_TABLE,
    TARGET_TABLE,
    head_widths,
    key_map,
    norm_of,
    with_equal_heads,
)
from heedful.exchange.ctranslate2.record import ExportRecord, digest_of_weights
from heedful.exchange.ctranslate2.vocabulary import distinct, never_written, read_vocabularies
from heedful.exchange.extras import import_extra
from heedful.exchange.formats import ExportResult, ModelBundle, Problems, WriteOptions
from heedful.exchange.parity import ReferenceModel
from heedful.families.keymap import SAME
from heedful.model.embedding import SINUSOIDS
from heedful.runs.folder import write_json
from heedful.tokenization.tokenizer import END, PAD, START, UNKNOWN

USES = ("quantization",)
"""Options of this format."""
EXPRESSES = frozenset(("model.positions=rotary",))
"""Settings beyond the paper's Transformer that the format can express."""
_NEEDS = "`heedful export --format ctranslate2`"
# Tolerances for rounded weights: a few times the differences measured for random weights. On a
# machine without 16-bit integers, CTranslate2 rounds weights to 8 bits. Rounding to 8 bits changes
# the log-probabilities of improbable words by tenths; the comparison of translations shows whether
# translations suffer.
BOUNDS = {
    "float32": 1e-4,
    "float16": 5e-2,
    "bfloat16": 5e-1,
    "int16": 2.0,
    "int8": 2.0,
    "int8_float32": 2.0,
    "int8_float16": 2.0,
    "int8_bfloat16": 2.0,
}
"""Number formats of the weights, each with the tolerance for log-probabilities."""

_ITS_OWN = {
    "stop": "as-ctranslate2",
    "eos_candidates": "beam",
    "length_limit_policy": "cut",
    "renormalise": False,
}


def write(model: ModelBundle, folder: Path, options: WriteOptions) -> ExportResult:
    """Write a model. Raises `ExchangeError` with all reasons at once."""
    specs = import_extra("ctranslate2.specs", _NEEDS)
    _refuse(model.config, options)
    variables = _variables(model, options.positions)
    spec = _build_spec(specs, model.config.model, variables)
    source, target = _vocabularies(model, variables)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    start = {"symbol": START, "end": END, "pad": PAD, "zero": PAD}[model.config.model.decoder_start]
    spec.config.unk_token, spec.config.bos_token = target[UNKNOWN], target[START]
    spec.config.eos_token, spec.config.decoder_start_token = target[END], target[start]
    spec.config.add_source_eos = model.config.model.source_end
    spec.config.layer_norm_epsilon = model.config.model.norm_epsilon
    spec.validate()
    spec.optimize(options.quantization or None)
    spec.save(str(folder))
    model.tokenizer.save(folder)
    search = model.config.search.model_copy(update=_ITS_OWN)
    record = ExportRecord(
        search,
        options.positions,
        model.config.model.source_end,
        options.quantization or "float32",
        __version__,
        model.tokenizer.fingerprint,
        digest_of_weights(folder),
        model.config.data.reading,
    )
    write_json(folder / ExportRecord.FILE, record.to_dict())
    rows = (
        f"No text can be longer than {options.positions} subwords, including the end symbol, "
        "because the position table has only that many rows."
    )
    limits = search.max_length, record.search_within.max_length
    lowered = f"CTranslate2 searches with search.max_length = {limits[1]} instead of {limits[0]}"
    notes = (rows, lowered) if limits[0] != limits[1] else (rows,)
    return ExportResult(record.search_within, notes, BOUNDS[record.quantization])


def open_engine(folder: Path, model: ModelBundle) -> ReferenceModel:
    """Open the exported model with CTranslate2, or raise `MissingExtra`."""
    vocabularies = read_vocabularies(folder, {"unk_token": "<unk>"})
    source, target = (dict(enumerate(tokens)) for tokens in vocabularies)
    size, forbidden = model.tokenizer.target_size, model.config.search.forbidden_ids
    never = [target[number] for number in never_written(len(target), size, forbidden)]
    engine = Engine(folder, end=target[END], forbidden=never)
    return CTranslate2Reference(engine, source, target, model, ExportRecord.read(folder).positions)


def _refuse(config: RunConfig, options: WriteOptions) -> None:
    """Refuse a model that cannot be exported, with all reasons at once."""
    reasons = Problems()
    reasons.add_if(
        options.quantization not in ("", *BOUNDS),
        f"--quantization must be one of {', '.join(BOUNDS)}, but is {options.quantization}",
    )
    reasons.add_if(
        options.positions < 2, f"--positions must be at least 2, not {options.positions}"
    )
    for side in POSITIONS:
        reasons.add_if(
            norm_of(config.model, side) == "pre-no-final",
            f"its {side} normalizes before each sub-layer, but has no final norm",
        )
    reasons.refuse("CTranslate2 cannot express this model", "Change these options or settings")


def _variables(model: ModelBundle, positions: int) -> dict[str, Array]:
    """Convert our weights to CTranslate2's names; a tied table appears under all its names."""
    settings = model.config.model
    weights = with_equal_heads(settings, model.weights)
    names = key_map(settings, SAME, SAME, SAME)
    variables = {name: tensor.numpy() for name, tensor in names.to_theirs(weights).items()}
    variables.setdefault(TARGET_TABLE, variables[SOURCE_TABLE])
    variables.setdefault(OUTPUT_TABLE, variables[TARGET_TABLE])
    for side, name in POSITIONS.items():
        if side == "encoder" or settings.positions != ROTARY:
            variables[name] = _positions(settings, variables.get(name), positions)
    return variables


def _positions(model: ModelConfig, learned: Array | None, rows: int) -> Array:
    """Build the table of positions; past the end of a learned table, its last row is repeated."""
    if model.positions in ("none", ROTARY):
        return np.zeros((rows, model.d_model), dtype=np.float32)
    if learned is None:
        table: Array = SINUSOIDS[model.positions](
            model.position_offset, rows, model.d_model
        ).numpy()
        return table
    return learned[np.minimum(np.arange(rows), len(learned) - 1)]


def _build_spec(specs: Any, model: ModelConfig, variables: Mapping[str, Array]) -> Any:
    """Build CTranslate2's model spec with the variables."""
    activations = specs.common_spec.Activation
    activation = {
        "relu": activations.RELU,
        "gelu": activations.GELU,
        "gelu_tanh": activations.GELUTanh,
        "silu": activations.SWISH,
    }[model.activation]
    sides = {}
    for side, make in (
        ("encoder", specs.transformer_spec.TransformerEncoderSpec),
        ("decoder", specs.transformer_spec.TransformerDecoderSpec),
    ):
        heads, d_k, _ = head_widths(model, side)
        layers = getattr(model, f"{side}_layers")
        rotation: dict[str, Any] = {}
        if model.positions == ROTARY:
            rotation = {"rotary_dim": d_k, "rotary_interleave": False}
            rotation["rotary_base"] = model.model_dump()[ROTARY]["base"]
        side_spec = make(
            layers,
            heads,
            pre_norm=norm_of(model, side) == "pre",
            activation=activation,
            **rotation,
        )
        side_spec.scale_embeddings = model.scale_embeddings
        for layer in side_spec.layer:
            for name in ("self_attention", "attention"):
                if hasattr(layer, name):
                    getattr(layer, name).queries_scale = 1.0 / math.sqrt(d_k)
        sides[side] = side_spec
    sides["decoder"].start_from_zero_embedding = model.decoder_start == "zero"
    spec = specs.transformer_spec.TransformerSpec(sides["encoder"], sides["decoder"])
    for name, value in variables.items():
        place, _, kind = name.rpartition("/")
        setattr(specs.model_spec.index_spec(spec, place), kind, value)
    return spec


def _vocabularies(
    model: ModelBundle, variables: Mapping[str, Array]
) -> tuple[list[str], list[str]]:
    """Name every row of both tables; special symbols have equal names on both sides."""
    tokenizer = model.tokenizer
    source, target = (
        distinct(
            [*spell(range(size)), *(f"<unused-{n}>" for n in range(size, len(variables[table])))]
        )
        for spell, size, table in (
            (tokenizer.pieces_source, tokenizer.source_size, SOURCE_TABLE),
            (tokenizer.pieces_target, tokenizer.target_size, TARGET_TABLE),
        )
    )
    first = END + 1
    return distinct([*target[:first], *source[first:]]), target
