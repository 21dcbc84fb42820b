"""
Original models as a side of a parity check: read from their files, computed in NumPy.

The rules of search are those of `fairseq-generate`, `onmt_translate` and ``joeynmt translate``,
read from the original settings and not from those of the run.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heedful.exchange import joey, opennmt
from heedful.exchange.convert import HeedfulReference
from heedful.exchange.fairseq import files as fairseq_files
from heedful.exchange.fairseq import read as fairseq
from heedful.exchange.find_tokenizer import first_ids
from heedful.exchange.parity import Parity, compare
from heedful.runs.run import Run
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.tokenizer import Tokenizer
from tests.oracles.numpy_convs2s import NumpyConvS2S
from tests.oracles.numpy_recurrent import NumpyRecurrent
from tests.oracles.numpy_transformer import ACTIVATIONS, LAYOUTS, Array, NumpyTransformer
from tests.oracles.numpy_translator import ForeignVocabulary, NumpySearch, NumpyTranslator

BOUND = 1e-3


def compare_import(kind: str, path: Path, run_folder: Path, sentences: Sequence[str]) -> Parity:
    """Compare an imported model with its original; raises `ParityFailed` where they differ."""
    run = Run.open(run_folder)
    original = ORIGINALS[kind](path, run)
    parity = compare(HeedfulReference(run), original, sentences, BOUND)
    parity.check()
    return parity


def fairseq_original(path: Path, run: Run) -> NumpyTranslator:
    """Read a Transformer or a convolutional model of fairseq."""
    file = fairseq_files.checkpoint_file(path)
    settings, tensors = fairseq.read_checkpoint(file)
    data = run.config.data
    languages = data.source_language, data.target_language
    numbers = [
        fairseq_files.read_dictionary(file.parent / f"dict.{name}.txt") for name in languages
    ]
    words = vocabularies(run.tokenizer, numbers, "<unk>", "</s>")
    generation = settings.get("generation") or {}
    power = 0.0 if generation.get("unnormalized") else generation.get("lenpen", 1.0)
    factor, constant = generation.get("max_len_a", 0.0), generation.get("max_len_b", 200)
    longest = settings.get("max_target_positions", 1024) - 1
    rule = NumpySearch(
        generation.get("beam", 5),
        lambda length: float(length**power),
        lambda source: min(int(factor * source + constant), longest),
        max(generation.get("min_len", 1), 0),
        numbers[1]["</s>"],
        (numbers[1]["<pad>"], numbers[1]["<s>"]),
    )
    model: NumpyTransformer | NumpyConvS2S
    if str(settings.get("arch") or "").startswith("fconv"):
        residuals = [
            [(*shape, 1)[2] for shape in eval(settings[f"{side}_layers"])]
            for side in ("encoder", "decoder")
        ]
        model = NumpyConvS2S(tensors, (residuals[0], residuals[1]))
    else:
        model = fairseq_transformer(settings, fairseq_files.upgrade_tensors(tensors))
    return NumpyTranslator(f"NumPy on {file}", model, run.tokenizer, *words, True, rule)


def fairseq_transformer(
    settings: Mapping[str, Any], tensors: Mapping[str, Array]
) -> NumpyTransformer:
    """Build a Transformer of fairseq, whose first position is 2 and learned or in halves."""
    width = settings["encoder_embed_dim"]
    scale = 1.0 if settings.get("no_scale_embedding") else math.sqrt(width)
    names = {
        "relu": "relu",
        "gelu": "gelu",
        "gelu_fast": "gelu_tanh",
        "gelu_accurate": "gelu_tanh",
        "swish": "silu",
    }
    norms = []
    for side, oldest in (("encoder", 2), ("decoder", 3)):
        version = tensors.get(f"{side}.version")
        # A final norm came later than the norms before sub-layers.
        is_closed = version is not None and float(version.reshape(-1)[0]) >= oldest
        is_closed = is_closed and not (side == "decoder" and settings.get("no_decoder_final_norm"))
        is_pre = settings.get(f"{side}_normalize_before", False)
        norms.append(("pre" if is_closed else "pre-no-final") if is_pre else "post")
    learned = bool(settings.get("encoder_learned_pos"))

    def positions(side: str, first: int, count: int) -> Array:
        if not learned:
            return LAYOUTS["halves"](2 + first, count, width)
        name = {"source": "encoder", "target": "decoder"}[side]
        table = tensors[f"{name}.embed_positions.weight"]
        return table[np.minimum(2 + first + np.arange(count), len(table) - 1)]

    return NumpyTransformer(
        tensors,
        fairseq_files.TENSOR_NAMES,
        (settings["encoder_layers"], settings["decoder_layers"]),
        (settings["encoder_attention_heads"], settings["decoder_attention_heads"]),
        (norms[0], norms[1]),
        1e-5,
        ACTIVATIONS[names[settings.get("activation_fn", "relu")]],
        (scale, scale),
        positions,
    )


def opennmt_original(path: Path, run: Run) -> NumpyTranslator:
    """Read a Transformer of OpenNMT-py."""
    settings, tensors, vocab = opennmt.read_checkpoint(path)
    numbers = list(map(first_ids, opennmt.read_vocabularies(vocab)))
    words = vocabularies(run.tokenizer, numbers, "<unk>", "</s>")
    start = {"symbol": "<s>", "end": "</s>"}[opennmt.start_symbol(settings, vocab)]
    is_new = opennmt.is_new(vocab)
    target = numbers[1]
    rule = NumpySearch(
        5,
        # BeamSearchBase.advance counts the start symbol in the length
        (lambda length: length + 1.0) if is_new else (lambda length: 1.0),
        lambda source: 250 if is_new else 100,
        0,
        target[start],
        tuple(n for name, n in target.items() if name in (*opennmt.PAD_PIECES, "<s>")),
        "as-opennmt",
    )
    zeros = {
        name.replace("weight", "bias"): np.zeros(len(array), array.dtype)
        for name, array in tensors.items()
        if ".transformer" in name and name.endswith("weight") and array.ndim == 2
    }
    layout = {"SinusoidalConcat": "halves"}.get(settings["position_encoding_type"], "interleaved")
    width = settings["hidden_size"]
    model = NumpyTransformer(
        {**zeros, **tensors},
        opennmt.TENSOR_NAMES,
        (settings["enc_layers"], settings["dec_layers"]),
        (settings["heads"],) * 2,
        ("pre", "pre"),
        settings.get("norm_eps") or 1e-6,
        ACTIVATIONS[settings.get("pos_ffn_activation_fn") or "relu"],
        (math.sqrt(width),) * 2,
        lambda side, first, count: LAYOUTS[layout](first, count, width),
    )
    return NumpyTranslator(f"NumPy on {path}", model, run.tokenizer, *words, False, rule)


def joey_original(path: Path, run: Run) -> NumpyTranslator:
    """Read a Transformer or a recurrent model of Joey NMT."""
    settings, tensors = joey.read_folder(path)
    special = joey.special_symbols(settings["data"])
    numbers = [joey.read_words(path / f"{side}_vocab.txt", special) for side in joey.SIDES]
    words = vocabularies(run.tokenizer, numbers, special["unknown"], special["end"])
    testing, target = settings["testing"], numbers[1]
    beam, longest = testing.get("beam_size", 1), testing.get("max_output_length", -1)
    alpha = max(testing.get("beam_alpha", testing.get("alpha", -1)), 0.0)
    forbidden = [target[special["pad"]], target[special["start"]]]
    if testing.get("generate_unk") is False:
        forbidden.append(target[special["unknown"]])
    rule = NumpySearch(
        beam,
        lambda length: float(((5 + length) / 6) ** alpha),
        lambda source: longest if longest > 0 else max(int(1.5 * source), 1),
        testing.get("min_output_length", 1),
        target[special["start"]],
        tuple(forbidden),
        "as-joey" if beam > 1 else "when-beam-finished",
    )
    model = settings["model"]
    is_recurrent = model["decoder"].get("type") == "recurrent"
    build = joey_recurrent if is_recurrent else joey_transformer
    plain = build(model, tensors)
    return NumpyTranslator(f"NumPy on {path}", plain, run.tokenizer, *words, True, rule)


def joey_scales(model: Mapping[str, Any], width: int) -> tuple[float, float]:
    """Return the factors of both embeddings; a tied table follows the source's setting."""
    source, target = (
        math.sqrt(width) if model[side]["embeddings"].get("scale") else 1.0
        for side in ("encoder", "decoder")
    )
    return source, source if model.get("tied_embeddings") else target


def joey_transformer(model: Mapping[str, Any], tensors: Mapping[str, Array]) -> NumpyTransformer:
    """Build a Transformer of Joey NMT."""
    encoder, decoder = model["encoder"], model["decoder"]
    width = encoder["hidden_size"]
    activation = {"relu": "relu", "gelu": "gelu", "swish": "silu"}[
        encoder.get("activation", "relu")
    ]
    return NumpyTransformer(
        tensors,
        joey.TENSOR_NAMES,
        (encoder["num_layers"], decoder["num_layers"]),
        (encoder["num_heads"], decoder["num_heads"]),
        # Without a setting nothing normalizes at the end of the encoder.
        (encoder.get("layer_norm", "pre-no-final"), decoder.get("layer_norm", "post")),
        1e-6,
        ACTIVATIONS[activation],
        joey_scales(model, width),
        lambda side, first, count: LAYOUTS["interleaved"](first, count, width),
    )


def joey_recurrent(model: Mapping[str, Any], tensors: Mapping[str, Array]) -> NumpyRecurrent:
    """Build a recurrent model of Joey NMT."""
    encoder, decoder = model["encoder"], model["decoder"]
    start = decoder.get("init_hidden", "bridge")
    return NumpyRecurrent(
        tensors,
        encoder.get("rnn_type", "gru"),
        (encoder.get("num_layers", 1), decoder.get("num_layers", 1)),
        joey_scales(model, encoder["embeddings"]["embedding_dim"]),
        decoder.get("attention", "bahdanau"),
        start if start in ("bridge", "last") else "zero",
        decoder.get("input_feeding", True),
    )


class Vocabularies(NamedTuple):
    """Both sides in the toolkit's order."""

    source: ForeignVocabulary
    target: ForeignVocabulary


def vocabularies(
    tokenizer: Tokenizer, numbers: Sequence[Mapping[str, int]], unknown: str, end: str
) -> Vocabularies:
    """Put the ids of the original files beside the mapping of the run."""
    sides = zip(map(_id_mapping, tokenizer.models), numbers, strict=True)
    return Vocabularies(
        *(
            ForeignVocabulary(mapping, ids, ids.get(unknown, 0), ids.get(end, -1))
            for mapping, ids in sides
        )
    )


def _id_mapping(model: Any) -> IdMapping:
    """Return the mapping of an imported subword model."""
    mapping: IdMapping = model.id_mapping
    return mapping


ORIGINALS: dict[str, Callable[[Path, Run], NumpyTranslator]] = {
    "fairseq": fairseq_original,
    "opennmt": opennmt_original,
    "joey": joey_original,
}
"""By the toolkit's name after ``--from``."""
