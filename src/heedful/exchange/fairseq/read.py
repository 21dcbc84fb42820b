"""
Import of fairseq models, from checkpoints of any version.

A checkpoint is a pickle with the weights and the training options. The folder must also contain
the vocabularies (``dict.LANGUAGE.txt`` of the binarized data) and the BPE codes or sentencepiece
model, if any. Transformers are read here, other architectures by their families (`Family.readers`).
In fairseq, decoding begins with the end symbol, and positions begin at 2, because padding has the
id 1. Sinusoids have sines before cosines, and scores are divided by length^lenpen.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.errors import ExchangeError
from heedful.exchange.bundle import bundle_of, family_reader, refuse_features
from heedful.exchange.fairseq.files import (
    TENSOR_NAMES,
    checkpoint_file,
    options_in,
    read_dictionary,
    upgrade_tensors,
)
from heedful.exchange.find_tokenizer import SPACES_NOTE, find_splitters, tokenizer_of
from heedful.exchange.formats import ModelBundle, Problems, ReadOptions
from heedful.exchange.pickled.lazy_tensors import read_arrays
from heedful.exchange.pickled.settings import MOST_TOKENS, WIDEST_BEAM
from heedful.exchange.pickled.torch_file import read_torch_file
from heedful.exchange.transformer import sides_of, transformer_of
from heedful.families.foreign import Array, FamilyReader, ForeignModel, number_in, table_in
from heedful.families.registry import readers_of
from heedful.tokenization.id_mapping import IdMapping

USES = ("tokenizer",)
"""Options of this format."""
SPECIAL = {"pad": "<pad>", "unknown": "<unk>", "start": "<s>", "end": "</s>"}
_FIRST_POSITION = 2
_ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "swish": "silu",
}
_IGNORED = ("*.version", "*._float_tensor", "*.embed_positions.weights")
# Options that change the computation, and that must be off.
_MUST_BE_OFF = (
    "layernorm_embedding",
    "adaptive_softmax_cutoff",
    "adaptive_input",
    "no_cross_attention",
    "cross_self_attention",
    "no_token_positional_embeddings",
    "char_inputs",
    "quant_noise_pq",
    "base_layers",
    "use_factorized_embedding",
    "merge_src_tgt_embed",
    "encoder_recurrent_stacking",
    "decoder_recurrent_stacking",
    "encoder_add_adapters",
    "decoder_add_adapters",
    "encoder_layers_to_keep",
    "decoder_layers_to_keep",
    "encoder_xformers_att_config",
    "decoder_xformers_att_config",
    "scale_attn",
    "scale_heads",
    "scale_fc",
    "scale_resids",
)


def read(path: Path, options: ReadOptions) -> ModelBundle:
    """Read a checkpoint. Raises `ExchangeError`, which may list several reasons."""
    file = checkpoint_file(path)
    settings, tensors = read_checkpoint(file)
    reader = family_reader("fairseq", settings)
    _refuse(settings, reader, file)
    languages = _languages(settings, options, file.parent)
    numbers = [read_dictionary(file.parent / f"dict.{language}.txt") for language in languages]
    id_mappings = [
        IdMapping.of(side_numbers, SPECIAL, _rows(tensors, side, len(side_numbers)))
        for side_numbers, side in zip(numbers, ("encoder", "decoder"), strict=True)
    ]
    splitters = find_splitters(file.parent, options, languages)
    tokenizer = tokenizer_of(id_mappings, splitters, languages)
    search, search_notes = _search(settings)
    notes = [SPACES_NOTE] * (splitters[0].kind == "spaces") + search_notes
    read_model = reader.read_model if reader else _read_transformer
    foreign = read_model(settings, tensors, tokenizer.shared)
    name = f"{file} (fairseq)"
    return bundle_of(name, foreign, id_mappings, tokenizer, languages, search, notes, _IGNORED)


def read_checkpoint(file: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read the options and the tensors of a checkpoint without executing its content."""
    saved = read_torch_file(file)
    if not isinstance(saved, dict) or not isinstance(saved.get("model"), dict):
        raise ExchangeError(f"{file} must be a checkpoint of fairseq, but contains no `model`.")
    return options_in(saved, file), read_arrays(saved["model"], file)


def _refuse(settings: Mapping[str, Any], reader: FamilyReader | None, file: Path) -> None:
    """Refuse settings that our model cannot express, with all reasons at once."""
    reasons = Problems()
    if reader is not None:
        reasons.messages += reader.problems(settings)
    else:
        _add_transformer_problems(settings, reasons)
    refuse_features(file, reasons)


def _add_transformer_problems(settings: Mapping[str, Any], reasons: Problems) -> None:
    """Add reasons why our Transformer cannot express the model."""
    arch = str(settings.get("arch") or "transformer")
    known = ["transformer", *(reader.KIND for reader in readers_of("fairseq"))]
    reasons.add_if(
        not arch.startswith("transformer") or arch.startswith("transformer_lm"),
        f"its architecture is {arch[:60]!r}, not one of the families {' and '.join(known)}",
    )
    for name in _MUST_BE_OFF:
        value = settings.get(name)
        reasons.add_if(bool(value), f"`{name}` is {str(value)[:40]}")
    activation = str(settings.get("activation_fn", "relu"))
    reasons.add_if(activation not in _ACTIVATIONS, f"`activation_fn` is {activation[:40]!r}")
    width = settings.get("encoder_embed_dim", 512)
    for name in ("decoder_embed_dim", "decoder_input_dim", "decoder_output_dim"):
        size = settings.get(name, width)
        unset = isinstance(size, str)  # omegaconf's interpolation, which means an equal width
        reasons.add_if(
            not unset and size != width, f"`{name}` is {size}, but the encoder's is {width}"
        )
    learned = [bool(settings.get(f"{side}_learned_pos")) for side in ("encoder", "decoder")]
    reasons.add_if(learned[0] != learned[1], "only one side has learned positions")


def _languages(settings: Mapping[str, Any], options: ReadOptions, folder: Path) -> tuple[str, str]:
    """Return the languages that the user or the checkpoint names."""
    source = options.source_language or settings.get("source_lang")
    target = options.target_language or settings.get("target_lang")
    if not source or not target:
        known = [file.name.split(".")[1] for file in sorted(folder.glob("dict.*.txt"))]
        raise ExchangeError(
            "The languages of a model must be known, but its checkpoint does not name both; give "
            "--source-language and --target-language (dictionaries in the folder: "
            f"{', '.join(known) or 'none'})."
        )
    return str(source), str(target)


def _rows(tensors: Mapping[str, Array], side: str, words: int) -> int:
    """Count the rows of the table of one side; there may be more rows than words."""
    table = tensors.get(f"{side}.embed_tokens.weight")
    return words if table is None else max((*table.shape, 0)[0], words)


def _read_transformer(
    settings: Mapping[str, Any], tensors: Mapping[str, Array], shared: bool
) -> ForeignModel:
    """Read a Transformer."""

    def side(name: str, default: int) -> list[int]:
        names = (f"{side}_{name}" for side in ("encoder", "decoder"))
        return [int(number_in(settings, name, default)) for name in names]

    tensors = upgrade_tensors(tensors)
    learned = bool(settings.get("encoder_learned_pos"))
    all_tied = bool(settings.get("share_all_embeddings")) and shared
    output_tied = all_tied or bool(settings.get("share_decoder_input_output_embed"))
    model = {
        "d_model": int(number_in(settings, "encoder_embed_dim", 512)),
        **sides_of(side("layers", 6), side("attention_heads", 8), side("ffn_embed_dim", 2048)),
        "activation": _ACTIVATIONS[settings.get("activation_fn", "relu")],
        "dropout": float(number_in(settings, "dropout", 0.1)),
        "norm_epsilon": 1e-5,
        "positions": "learned" if learned else "halves",
        "position_offset": 0 if learned else _FIRST_POSITION,
        "tie_embeddings": "all" if all_tied else "output" if output_tied else "none",
        "decoder_start": "end",
        "source_end": True,
    }
    scaled = not settings.get("no_scale_embedding")
    return transformer_of(
        TENSOR_NAMES,
        tensors,
        model,
        _norms(settings, tensors),
        (scaled, scaled),
        first_position=_FIRST_POSITION,
    )


def _norms(settings: Mapping[str, Any], tensors: Mapping[str, Array]) -> tuple[str, str]:
    """Return the norm setting of each stack; in old versions, pre-norm stacks had no final norm."""
    kinds = []
    for side, oldest in (("encoder", 2), ("decoder", 3)):
        version = tensors.get(f"{side}.version")
        old = version is None or float(version.reshape(-1)[0]) < oldest
        closed = not old and not (side == "decoder" and settings.get("no_decoder_final_norm"))
        before = settings.get(f"{side}_normalize_before", False)
        kinds.append(("pre" if closed else "pre-no-final") if before else "post")
    return kinds[0], kinds[1]


def _search(settings: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Build the search settings of ``fairseq-generate`` from the checkpoint or the defaults."""
    generation = table_in(settings, "generation")
    beam = int(number_in(generation, "beam", 5, WIDEST_BEAM))
    power = 0.0 if generation.get("unnormalized") else float(number_in(generation, "lenpen", 1.0))
    factor = float(number_in(generation, "max_len_a", 0.0, 100))
    constant = int(number_in(generation, "max_len_b", 200, MOST_TOKENS))
    longest = int(number_in(settings, "max_target_positions", 1024)) - 1
    notes = []
    if factor not in (0.0, 1.0):
        notes.append(
            f"fairseq ends translations at {factor:g} times the source's length + {constant}; "
            f"heedful ends them at the source's length + {constant + 1} (search.max_length)"
        )
    if power < 0:
        notes.append(
            f"heedful does not support the negative length penalty {power:g}, so scores are not "
            "divided by a power of the length"
        )
    search = {
        "beam": beam,
        "stop": "when-beam-finished",
        "length_limit_policy": "force",
        "length_penalty": f"power:{power:.4f}".rstrip("0").rstrip(".") if power > 0 else "none",
        "min_length": max(int(number_in(generation, "min_len", 1)), 0),
        # fairseq's length counts the end symbol of the source
        "max_length": f"input+{constant + 1}" if factor else str(max(min(constant, longest), 1)),
        "max_source_length": max(int(number_in(settings, "max_source_positions", 1024)) - 1, 1),
    }
    return search, notes
