"""
Import of Joey NMT models: the run folder of version 2, Transformers and recurrent models.

In it are ``config.yaml``, ``best.ckpt`` (a pickle), two lists of words and the copied codes or
sentencepiece model. A layer of a Transformer's encoder normalises before its sub-layers unless the
settings say otherwise, but then nothing normalises at the end; the decoder's default is the
paper's.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.errors import ExchangeError
from heedful.exchange.checkpoint_view import ForeignCheckpoint
from heedful.exchange.find_tokenizer import SPACES_NOTE, TextSplitter, read_splitter, tokenizer_of
from heedful.exchange.formats import ModelBundle, Problems, ReadOptions
from heedful.exchange.joey_recurrent import (
    RecurrentCheckpoint,
    add_recurrent_problems,
    recurrent_model,
)
from heedful.exchange.pickled.lazy_tensors import read_arrays
from heedful.exchange.pickled.settings import MOST_TOKENS, WIDEST_BEAM, number_in, settings_of
from heedful.exchange.pickled.torch_file import read_torch_file
from heedful.exchange.plain_yaml import read_yaml
from heedful.exchange.reference.numpy_translator import (
    ForeignVocabulary,
    NumpySearch,
    NumpyTranslator,
)
from heedful.exchange.tensor_names import TensorNames
from heedful.files import read_within
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.tokenizer import UNKNOWN

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
    "Joey NMT splits a subword further if it is not in the word list; heedful makes it unknown"
)
_SIDES = ("src", "trg")
# Default of `layer_norm` in each stack, without a norm at the end of the stack.
_DEFAULT_NORMS = ("pre-no-final", "post")


class JoeyReader:
    """Importer of Joey NMT models; the parity check uses a NumPy reference."""

    name = "joey"
    """Its name on the command line."""
    bound = 1e-3
    """Tolerance for differences of log-probabilities."""

    def read(self, path: Path, options: ReadOptions) -> ModelBundle:
        """Read a model folder. Raises `ExchangeError` with all reasons at once."""
        return read_original(path, options).portable()

    def reference(self, path: Path, model: ModelBundle) -> NumpyTranslator:
        """Read the folder again for a NumPy reference. Raises what `read` raises."""
        return read_original(path, ReadOptions(), model).reference()


READER = JoeyReader()


def read_original(
    path: Path, options: ReadOptions, bundle: ModelBundle | None = None
) -> ForeignCheckpoint | RecurrentCheckpoint:
    """Read a model folder of Joey NMT. Raises `ExchangeError`. Nothing in the files is executed."""
    settings = settings_of(read_yaml(path / "config.yaml", "Reading a model of Joey NMT"))
    data, model = _table(settings, "data"), _table(settings, "model")
    file = path / "best.ckpt"
    saved = read_torch_file(file)
    state = saved.get("model_state") if isinstance(saved, dict) else None
    if not isinstance(state, dict):
        raise ExchangeError(f"{file} must be a checkpoint of Joey NMT, but has no `model_state`.")
    tensors = read_arrays(state, file)
    sides = [_table(model, "encoder"), _table(model, "decoder")]
    _refuse(data, model, sides, path)
    texts = [_table(data, side) for side in _SIDES]
    languages = (_language(texts[0]), _language(texts[1]))
    special = _special(data)
    words = tuple(_words(path / f"{side}_vocab.txt", special) for side in _SIDES)
    notes: list[str] = _text_notes(texts)
    if bundle is None:
        splitters = [_find_cutter(path, text, options) for text in texts]
        tokenizer = tokenizer_of([one.id_mapping for one in words], splitters, languages)
        notes += [_CODES_NOTE] * (splitters[0].kind == "codes")
        notes += [SPACES_NOTE] * (splitters[0].kind == "spaces" and texts[0].get("level") == "bpe")
    else:
        tokenizer = bundle.tokenizer
    search, rule, more = _search(_table(settings, "testing"), words[1], special)
    notes += more
    name, pair, scaled = f"{path} (Joey NMT)", (words[0], words[1]), _scaled(model, sides)
    if _families(sides) == ("recurrent", "recurrent"):
        wiring, more = recurrent_model(model, sides, tokenizer.shared, scaled)
        return RecurrentCheckpoint(
            name,
            tensors,
            wiring,
            scaled,
            languages,
            tokenizer,
            pair,
            search,
            rule,
            _IGNORED,
            (*notes, *more),
        )
    return ForeignCheckpoint(
        name,
        TENSOR_NAMES,
        tensors,
        _model(model, sides, tokenizer.shared),
        (_norm(sides[0], 0), _norm(sides[1], 1)),
        scaled,
        languages,
        tokenizer,
        pair,
        search,
        rule,
        ignored=_IGNORED,
        notes=tuple(notes),
    )


def _table(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return one table of the settings."""
    part = settings.get(name)
    return part if isinstance(part, dict) else {}


def _families(stacks: list[dict[str, Any]]) -> tuple[str, str]:
    """Return the kinds of encoder and decoder."""
    encoder, decoder = stacks
    return str(encoder.get("type", "recurrent")), str(decoder.get("type", "transformer"))


def _refuse(
    data: Mapping[str, Any],
    model: Mapping[str, Any],
    stacks: list[dict[str, Any]],
    path: Path,
) -> None:
    """Refuse what our model cannot express, all reasons at once."""
    reasons = Problems()
    families = _families(stacks)
    if families == ("recurrent", "recurrent"):
        add_recurrent_problems(model, stacks, reasons)
    else:
        reasons.add_if(
            families != ("transformer", "transformer"),
            f"the encoder is {families[0][:40]} and the decoder {families[1][:40]}, but only two "
            "Transformers or two recurrent ones can be imported",
        )
        _add_transformer_problems(stacks, reasons)
    for text in (_table(data, name) for name in _SIDES):
        level = text.get("level", "word")
        reasons.add_if(
            level not in ("word", "bpe"), f"text is split by `level` {str(level)[:40]!r}"
        )
    reasons.refuse(
        f"{path} cannot be expressed here",
        "A model without these can be imported; no option changes this",
    )


def _add_transformer_problems(stacks: list[dict[str, Any]], reasons: Problems) -> None:
    """Add what our Transformer cannot express."""
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
    reasons.add_if(len(set(map(str, activations))) > 1, "the activations of the sides differ")


def _language(text: Mapping[str, Any]) -> str:
    """Read a language; YAML parses Norwegian's code `no` as false."""
    code = text.get("lang", "")
    return "no" if code is False else str(code or "")


def _special(data: Mapping[str, Any]) -> dict[str, str]:
    """Read the spelling of the special symbols."""
    named = _table(data, "special_symbols")
    defaults = {"pad": "<pad>", "unk": "<unk>", "bos": "<s>", "eos": "</s>"}
    spelled = {name: str(named.get(f"{name}_token", piece)) for name, piece in defaults.items()}
    return dict(zip(("pad", "unknown", "start", "end"), spelled.values(), strict=True))


def _words(file: Path, special: Mapping[str, str]) -> ForeignVocabulary:
    """Read the words of one side, one per line in the order of their ids."""
    try:
        lines = read_within(file).decode().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ExchangeError(
            f"{file} must be the words of a model, one a line, but cannot be read ({error}); give "
            "the folder that the training left, with all of its files."
        ) from error
    pieces = lines[:-1] if lines[-1] == "" else lines
    numbers = {piece: number for number, piece in enumerate(pieces)}
    if len(numbers) != len(pieces) or any(piece not in numbers for piece in special.values()):
        raise ExchangeError(
            f"{file} must have each word once and the special symbols "
            f"{', '.join(special.values())}, but does not; copy it again."
        )
    id_mapping = IdMapping.of(numbers, special, len(pieces))
    return ForeignVocabulary(
        id_mapping, numbers, numbers[special["unknown"]], numbers[special["end"]]
    )


def _find_cutter(path: Path, text: Mapping[str, Any], options: ReadOptions) -> TextSplitter:
    """Find the tokenizer file of one side, which the settings name and the folder has a copy of."""
    if options.tokenizer is not None and options.tokenizer.is_file():
        return read_splitter(options.tokenizer)
    if text.get("level", "word") != "bpe":
        return TextSplitter("spaces")
    given = _table(text, "tokenizer_cfg")
    name = given.get("model_file") or given.get("codes")
    places = [options.tokenizer] if options.tokenizer else [path]
    for place in places:
        file = place / Path(str(name or "")).name
        if name and file.is_file():
            return read_splitter(file)
    return TextSplitter("spaces")


def _text_notes(texts: list[dict[str, Any]]) -> list[str]:
    """Describe text preprocessing of Joey NMT that is not done here."""
    notes = []
    for name in ("lowercase", "normalize"):
        if any(text.get(name) for text in texts):
            notes.append(f"Joey NMT was set to {name} text first, which heedful does not do")
    moses = any(_table(text, "tokenizer_cfg").get("pretokenizer") == "moses" for text in texts)
    return notes + ["text must be tokenised by Moses' rules, which Joey NMT did itself"] * moses


def _norm(side: Mapping[str, Any], number: int) -> str:
    """Return where a stack normalises."""
    return str(side.get("layer_norm", _DEFAULT_NORMS[number]))


def _scaled(model: Mapping[str, Any], stacks: list[dict[str, Any]]) -> tuple[bool, bool]:
    """Return which embeddings are scaled; a tied table follows the source's setting."""
    source, target = (bool(_table(side, "embeddings").get("scale")) for side in stacks)
    return source, source if model.get("tied_embeddings") else target


def _model(model: Mapping[str, Any], stacks: list[dict[str, Any]], shared: bool) -> dict[str, Any]:
    """Build the model settings."""

    def both(name: str, default: tuple[int, int]) -> tuple[int, int]:
        first, second = (
            int(number_in(side, name, value)) for side, value in zip(stacks, default, strict=True)
        )
        return first, second

    layers, heads, d_ff = (
        both("num_layers", (8, 4)),
        both("num_heads", (4, 8)),
        both("ff_size", (2048, 2048)),
    )
    embeddings = bool(model.get("tied_embeddings")) and shared
    output = bool(model.get("tied_softmax"))
    return {
        "d_model": int(number_in(stacks[0], "hidden_size", 512)),
        "d_ff": d_ff[0],
        "heads": heads[0],
        "encoder_layers": layers[0],
        "decoder_layers": layers[1],
        **({"encoder_heads": heads[0], "decoder_heads": heads[1]} if heads[0] != heads[1] else {}),
        **({"encoder_d_ff": d_ff[0], "decoder_d_ff": d_ff[1]} if d_ff[0] != d_ff[1] else {}),
        "activation": _ACTIVATIONS[str(stacks[0].get("activation", "relu"))],
        "dropout": float(number_in(stacks[0], "dropout", 0.1)),
        "norm_epsilon": 1e-6,
        "positions": "interleaved",
        "tie_embeddings": "all" if embeddings and output else "output" if output else "none",
        "decoder_start": "symbol",
        "source_end": True,
    }


def _search(
    testing: Mapping[str, Any], target: ForeignVocabulary, special: Mapping[str, str]
) -> tuple[dict[str, Any], NumpySearch, list[str]]:
    """Build the search settings of ``joeynmt translate``."""
    beam = max(int(number_in(testing, "beam_size", 1, WIDEST_BEAM)), 1)
    alpha = float(number_in(testing, "beam_alpha", number_in(testing, "alpha", -1)))
    longest = int(number_in(testing, "max_output_length", -1, MOST_TOKENS))
    notes = []
    if longest < 0:
        notes.append(
            "Joey NMT ends translations at 1.5 times the source's length; here they end at the "
            "source's length + 50 (search.max_length)"
        )
    least = max(int(number_in(testing, "min_output_length", 1)), 0)
    search: dict[str, Any] = {
        "beam": beam,
        "length_penalty": f"gnmt:{alpha:.4f}".rstrip("0").rstrip(".") if alpha > 0 else "none",
        "min_length": least,
        "max_length": str(longest) if longest > 0 else "input+50",
        "stop": "as-joey",
        "length_limit_policy": "keep",
    }
    forbidden = [target.numbers[special["pad"]], target.numbers[special["start"]]]
    if testing.get("generate_unk") is False:
        search["forbidden_ids"] = str(UNKNOWN)
        forbidden.append(target.unknown)
    for name in ("repetition_penalty", "no_repeat_ngram_size"):
        value = number_in(testing, name, -1)
        if value > 1:
            notes.append(f"Joey NMT searched with {name} = {value:g}, which heedful does not do")
    rule = NumpySearch(
        beam,
        lambda length: float(((5 + length) / 6) ** max(alpha, 0.0)),
        lambda source: longest if longest > 0 else max(int(1.5 * source), 1),
        least,
        target.numbers[special["start"]],
        tuple(forbidden),
        "as-joey" if beam > 1 else "when-beam-finished",
    )
    return search, rule, notes
