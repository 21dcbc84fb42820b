"""
Import of Joey NMT models, from run folders of version 2.

The folder has ``config.yaml``, ``best.ckpt`` (a pickle), two lists of words, and a copy of the BPE
codes or the sentencepiece model. Transformers are read here, other models by their families
(`Family.readers`). By default, the layers of a Transformer's encoder are pre-norm, but the stack
has no final norm. The default of the decoder is post-norm, as in the paper.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.errors import ExchangeError
from heedful.exchange.bundle import bundle_of, family_reader, refuse_features
from heedful.exchange.find_tokenizer import (
    SPACES_NOTE,
    TextSplitter,
    read_splitter,
    tokenizer_of,
    tokenizer_place,
)
from heedful.exchange.formats import ModelBundle, Problems, ReadOptions
from heedful.exchange.pickled.lazy_tensors import read_arrays
from heedful.exchange.pickled.settings import MOST_TOKENS, WIDEST_BEAM, settings_of
from heedful.exchange.pickled.torch_file import read_torch_file
from heedful.exchange.plain_yaml import read_yaml
from heedful.exchange.transformer import TensorNames, sides_of, transformer_of
from heedful.families.foreign import Array, FamilyReader, ForeignModel, number_in, table_in
from heedful.families.registry import readers_of
from heedful.files import read_within
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.tokenizer import UNKNOWN

USES = ("tokenizer",)
"""Options of this format."""
TENSOR_NAMES = TensorNames(
    encoder_layer="encoder.layers.{}",
    decoder_layer="decoder.layers.{}",
    encoder_self="src_src_att",
    decoder_self="trg_trg_att",
    cross="src_trg_att",
    query="q_layer",
    key="k_layer",
    value="v_layer",
    mixed="output_layer",
    linear1="feed_forward.pwff_layer.0",
    linear2="feed_forward.pwff_layer.3",
    encoder_norms=("layer_norm", "feed_forward.layer_norm"),
    decoder_norms=("x_layer_norm", "dec_layer_norm", "feed_forward.layer_norm"),
    encoder_norm="encoder.layer_norm",
    decoder_norm="decoder.layer_norm",
    source_table="src_embed.lut.weight",
    target_table="trg_embed.lut.weight",
    output_embedding="decoder.output_layer.weight",
)
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "silu"}
_IGNORED = ("*.pe.pe", "loss_function.*")
_CODES_NOTE = (
    "Joey NMT splits a subword further if it is not in the word list; heedful maps such a subword "
    "to the unknown symbol"
)
SIDES = ("src", "trg")
"""Joey NMT's names for the two sides."""
# Default norms of encoder and decoder, as values of our norm settings.
_DEFAULT_NORMS = ("pre-no-final", "post")


def read(path: Path, options: ReadOptions) -> ModelBundle:
    """Read a model folder. Raises `ExchangeError`, which may list several reasons."""
    settings, tensors = read_folder(path)
    data, model = table_in(settings, "data"), table_in(settings, "model")
    reader = family_reader("joey", model)
    _refuse(data, model, reader, path)
    texts = [table_in(data, side) for side in SIDES]
    languages = (
        options.source_language or _language(texts[0]),
        options.target_language or _language(texts[1]),
    )
    special = special_symbols(data)
    words = [read_words(path / f"{side}_vocab.txt", special) for side in SIDES]
    splitters = [_find_splitter(path, text, options) for text in texts]
    id_mappings = [IdMapping.of(numbers, special, len(numbers)) for numbers in words]
    tokenizer = tokenizer_of(id_mappings, splitters, languages)
    search, search_notes = _search(table_in(settings, "testing"))
    notes = [*_text_notes(texts, splitters[0].kind), *search_notes]
    read_model = reader.read_model if reader else _read_transformer
    foreign = read_model(model, tensors, tokenizer.shared)
    name = f"{path} (Joey NMT)"
    return bundle_of(name, foreign, id_mappings, tokenizer, languages, search, notes, _IGNORED)


def read_folder(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read the settings and the tensors of a folder without executing its content."""
    settings = settings_of(read_yaml(path / "config.yaml", "Reading a model of Joey NMT"))
    file = path / "best.ckpt"
    saved = read_torch_file(file)
    state = saved.get("model_state") if isinstance(saved, dict) else None
    if not isinstance(state, dict):
        raise ExchangeError(f"{file} must be a checkpoint of Joey NMT, but has no `model_state`.")
    return settings, read_arrays(state, file)


def _stacks(model: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the settings of encoder and decoder."""
    return [table_in(model, "encoder"), table_in(model, "decoder")]


def _refuse(
    data: Mapping[str, Any], model: Mapping[str, Any], reader: FamilyReader | None, path: Path
) -> None:
    """Refuse settings that our model cannot express, with all reasons at once."""
    reasons = Problems()
    if reader is not None:
        reasons.messages += reader.problems(model)
    else:
        _add_transformer_problems(_stacks(model), reasons)
    for text in (table_in(data, name) for name in SIDES):
        level = text.get("level", "word")
        reasons.add_if(
            level not in ("word", "bpe"), f"text is split by `level` {str(level)[:40]!r}"
        )
    refuse_features(path, reasons)


def _add_transformer_problems(stacks: list[dict[str, Any]], reasons: Problems) -> None:
    """Add reasons why our Transformer cannot express the model."""
    kinds = [
        str(stack.get("type", kind))
        for stack, kind in zip(stacks, ("recurrent", "transformer"), strict=True)
    ]
    known = ["transformer", *(reader.KIND for reader in readers_of("joey"))]
    reasons.add_if(
        kinds != ["transformer", "transformer"],
        f"the encoder is {kinds[0][:40]} and the decoder {kinds[1][:40]}, but both must be "
        f"{' or both '.join(known)}",
    )
    widths = [side.get("hidden_size", 512) for side in stacks]
    reasons.add_if(widths[0] != widths[1], f"the widths differ: {widths[0]} and {widths[1]}")
    for name, side in zip(("encoder", "decoder"), stacks, strict=True):
        alpha = side.get("alpha", 1.0)
        reasons.add_if(alpha != 1, f"`alpha` of the {name} is {str(alpha)[:40]}")
        norm = side.get("layer_norm", "pre")
        reasons.add_if(norm not in ("pre", "post"), f"`layer_norm` is {str(norm)[:40]!r}")
    activations = [side.get("activation", "relu") for side in stacks]
    for activation in dict.fromkeys(map(str, activations)):
        reasons.add_if(activation not in _ACTIVATIONS, f"`activation` is {activation[:40]!r}")
    reasons.add_if(
        len(set(map(str, activations))) > 1, ("the activations of encoder and decoder differ")
    )


def _language(text: Mapping[str, Any]) -> str:
    """Read a language code; YAML parses `no`, the code of Norwegian, as false."""
    code = text.get("lang", "")
    return "no" if code is False else str(code or "")


def special_symbols(data: Mapping[str, Any]) -> dict[str, str]:
    """Read the spelling of the special symbols."""
    named = table_in(data, "special_symbols")
    defaults = {"pad": "<pad>", "unk": "<unk>", "bos": "<s>", "eos": "</s>"}
    spelled = {name: str(named.get(f"{name}_token", piece)) for name, piece in defaults.items()}
    return dict(zip(("pad", "unknown", "start", "end"), spelled.values(), strict=True))


def read_words(file: Path, special: Mapping[str, str]) -> dict[str, int]:
    """Read the words of one side, one per line, and number them in this order."""
    try:
        lines = read_within(file).decode().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ExchangeError(
            f"{file} must list the words of a model, but cannot be read ({error}); give the "
            "model's training folder with all of its files."
        ) from error
    pieces = lines[:-1] if lines[-1] == "" else lines
    numbers = {piece: number for number, piece in enumerate(pieces)}
    if len(numbers) != len(pieces) or any(piece not in numbers for piece in special.values()):
        raise ExchangeError(
            f"{file} must have each word once and the special symbols "
            f"{', '.join(special.values())}, but does not; copy it again."
        )
    return numbers


def _find_splitter(path: Path, text: Mapping[str, Any], options: ReadOptions) -> TextSplitter:
    """Find the copy of the tokenizer file that the settings name for one side."""
    place = tokenizer_place(options, path)
    if place.is_file():
        return read_splitter(place)
    if text.get("level", "word") != "bpe":
        return TextSplitter("spaces")
    config = table_in(text, "tokenizer_cfg")
    name = config.get("model_file") or config.get("codes")
    file = place / Path(str(name or "")).name
    return read_splitter(file) if name and file.is_file() else TextSplitter("spaces")


def _text_notes(texts: list[dict[str, Any]], splitter: str) -> list[str]:
    """Describe the text preprocessing that Joey NMT does, but heedful does not."""
    notes = []
    for name in ("lowercase", "normalize"):
        if any(text.get(name) for text in texts):
            notes.append(f"Joey NMT was configured to {name} text, but heedful does not do this")
    moses = any(table_in(text, "tokenizer_cfg").get("pretokenizer") == "moses" for text in texts)
    notes += [
        "Joey NMT tokenized text by Moses' rules itself; heedful's input must already be "
        "tokenized this way"
    ] * moses
    notes += [_CODES_NOTE] * (splitter == "codes")
    return notes + [SPACES_NOTE] * (splitter == "spaces" and texts[0].get("level") == "bpe")


def _read_transformer(
    model: Mapping[str, Any], tensors: Mapping[str, Array], shared: bool
) -> ForeignModel:
    """Read a Transformer; if embeddings are tied, the source's scale setting applies to both."""
    stacks = _stacks(model)

    def both(name: str, *defaults: int) -> list[int]:
        pairs = zip(stacks, defaults, strict=True)
        return [int(number_in(stack, name, default)) for stack, default in pairs]

    tied = bool(model.get("tied_embeddings"))
    output = bool(model.get("tied_softmax"))
    source, target = (bool(table_in(side, "embeddings").get("scale")) for side in stacks)
    settings = {
        "d_model": int(number_in(stacks[0], "hidden_size", 512)),
        **sides_of(both("num_layers", 8, 4), both("num_heads", 4, 8), both("ff_size", 2048, 2048)),
        "activation": _ACTIVATIONS[str(stacks[0].get("activation", "relu"))],
        "dropout": float(number_in(stacks[0], "dropout", 0.1)),
        "norm_epsilon": 1e-6,
        "positions": "interleaved",
        "tie_embeddings": "all" if tied and shared and output else "output" if output else "none",
        "decoder_start": "symbol",
        "source_end": True,
    }
    first, second = (
        str(stack.get("layer_norm", norm))
        for stack, norm in zip(stacks, _DEFAULT_NORMS, strict=True)
    )
    scaled = (source, source if tied else target)
    return transformer_of(TENSOR_NAMES, tensors, settings, (first, second), scaled)


def _search(testing: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Build the search settings of ``joeynmt translate``."""
    beam = max(int(number_in(testing, "beam_size", 1, WIDEST_BEAM)), 1)
    alpha = float(number_in(testing, "beam_alpha", number_in(testing, "alpha", -1)))
    longest = int(number_in(testing, "max_output_length", -1, MOST_TOKENS))
    notes = []
    if longest < 0:
        notes.append(
            "Joey NMT ends translations at 1.5 times the source's length; heedful ends them at "
            "the source's length + 50 (search.max_length)"
        )
    search: dict[str, Any] = {
        "beam": beam,
        "length_penalty": f"gnmt:{alpha:.4f}".rstrip("0").rstrip(".") if alpha > 0 else "none",
        "min_length": max(int(number_in(testing, "min_output_length", 1)), 0),
        "max_length": str(longest) if longest > 0 else "input+50",
        "stop": "as-joey",
        "length_limit_policy": "keep",
    }
    if testing.get("generate_unk") is False:
        search["forbidden_ids"] = str(UNKNOWN)
    for name in ("repetition_penalty", "no_repeat_ngram_size"):
        value = number_in(testing, name, -1)
        if value > 1:
            notes.append(f"Joey NMT searched with {name} = {value:g}, which is not imported")
    return search, notes
