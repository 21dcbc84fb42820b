"""The files of a Hugging Face repository that an import needs."""

from collections.abc import Collection

from heedful.exchange.huggingface.weights import LAYOUTS

TEXT_FILES = (
    "added_tokens.json",
    "generation_config.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "source.spm",
    "special_tokens_map.json",
    "spiece.model",
    "target.spm",
    "target_vocab.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
)
"""Files with the settings and subwords of all classes."""


def text_files(names: Collection[str]) -> list[str]:
    """Select the files with settings and subwords."""
    return [name for name in TEXT_FILES if name in names]


def weights_name(names: Collection[str]) -> str | None:
    """Choose the file or index of the weights; None if there are no readable weights."""
    return next((name for name in LAYOUTS if name in names), None)
