"""Subwords and settings for Joey NMT, used by its process and by `benchmarks.joey`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

VERSION = "2.3.0"
SPECIAL = {"unk": "<unk>", "pad": "<pad>", "bos": "<s>", "eos": "</s>"}
"""Special symbols by name, in the order of their ids."""


def learn_subwords(folder: Path, languages: Sequence[str], size: int) -> None:
    """Learn a joint subword model of both sides of `train`, and write its vocabulary."""
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        input=",".join(str(folder / f"train.{language}") for language in languages),
        model_prefix=str(folder / "subwords"),
        model_type="bpe",
        vocab_size=size,
        character_coverage=1.0,
        **{f"{name}_id": number for number, name in enumerate(SPECIAL)},
        minloglevel=2,
    )
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "subwords.model"))
    pieces = [model.id_to_piece(number) for number in range(len(model))]
    (folder / "vocabulary.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")


def special_symbols() -> dict[str, Any]:
    """Return the special symbols and their ids in the form of Joey NMT's settings."""
    symbols = {f"{name}_token": symbol for name, symbol in SPECIAL.items()}
    return symbols | {f"{name}_id": number for number, name in enumerate(SPECIAL)}


def transformer(
    layers: int, heads: int, width: int, inner: int, dropout: float, **more: Any
) -> dict[str, Any]:
    """Build the settings of a Transformer's encoder or decoder, with dropout on embeddings."""
    embeddings = {"embedding_dim": width, "scale": True} | more.pop("embeddings", {})
    return {
        "type": "transformer",
        "num_layers": layers,
        "num_heads": heads,
        "embeddings": embeddings,
        "hidden_size": width,
        "ff_size": inner,
        "dropout": dropout,
        **more,
    }


def build_settings(
    folder: Path,
    languages: Sequence[str],
    model: dict[str, Any],
    *,
    data: dict[str, Any],
    testing: dict[str, Any],
    training: dict[str, Any],
    **more: Any,
) -> dict[str, Any]:
    """Build the settings of a training run on the text and subwords of a folder."""

    def side(language: str) -> dict[str, Any]:
        return {
            "lang": language,
            "max_length": 256,
            "level": "bpe",
            "voc_file": str(folder / "vocabulary.txt"),
            "tokenizer_type": "sentencepiece",
            "tokenizer_cfg": {"model_file": str(folder / "subwords.model")},
        }

    texts = {"train": str(folder / "train"), "dev": str(folder / "valid"), "dataset_type": "plain"}
    sides = dict(zip(("src", "trg"), map(side, languages), strict=True))
    return {
        "name": "benchmark",
        "joeynmt_version": VERSION,
        "random_seed": 1,
        "data": texts | sides | data,
        "testing": {"beam_size": 1} | testing,
        "training": {
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            # Joey NMT's schedule `plateau` does not run with this version of torch
            "scheduling": "noam",
            "normalization": "tokens",
            "loss": "crossentropy",
            "label_smoothing": 0.1,
            "batch_type": "token",
            **training,
        },
        "model": model,
        **more,
    }
