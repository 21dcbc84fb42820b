"""
A unigram model in ``tokenizer.json``, as a sentencepiece model.

transformers 5 writes the tokenizer model only to this file. Pieces, scores and the character map
are those of sentencepiece, so a model that is built from them splits text in the same way.
"""

import base64
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.errors import ExchangeError
from heedful.exchange.formats import read_settings_file
from heedful.tokenization.model_proto import unigram_model

FILE = "tokenizer.json"
# Steps other than the character map only normalize spaces, as sentencepiece itself does.
_SPACES = ("Replace", "Strip", "Precompiled")


def unigram_pieces(path: Path) -> list[tuple[str, float]]:
    """Read the pieces and scores of a unigram model; `ExchangeError` if there is none."""
    model = read_settings_file(path / FILE).get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(vocabulary, list) or not all(map(_is_piece, vocabulary)):
        raise ExchangeError(
            f"{path / FILE} must have a unigram model, a list of pieces with scores, but has "
            f"something else; give a folder with a sentencepiece model."
        )
    return [(text, float(score)) for text, score in vocabulary]


def sentencepiece_of(
    path: Path, pieces: list[tuple[str, float]], special: Mapping[str, int]
) -> bytes:
    """Build a sentencepiece model from pieces. `special`: ids of its special symbols."""
    settings = read_settings_file(path / FILE)
    if settings["model"].get("byte_fallback"):
        raise ExchangeError(
            f"{path / FILE} must not have byte_fallback; give a folder with a sentencepiece model."
        )
    return unigram_model(pieces, special, _characters(settings.get("normalizer"), path))


def _is_piece(entry: Any) -> bool:
    """Return whether an entry is a piece with its score."""
    return (
        isinstance(entry, list)
        and len(entry) == 2
        and isinstance(entry[0], str)
        and isinstance(entry[1], int | float)
        and math.isfinite(entry[1])
    )


def _characters(normalizer: Any, path: Path) -> bytes:
    """Find the character map of a normalizer."""
    parts = [normalizer]
    if isinstance(normalizer, dict) and normalizer.get("type") == "Sequence":
        parts = normalizer.get("normalizers") or []
    steps = [part for part in parts if part is not None]
    known = [isinstance(step, dict) and step.get("type") in _SPACES for step in steps]
    try:
        maps = [step for step in steps if all(known) and step["type"] == "Precompiled"]
        if not all(known) or len(maps) > 1:
            raise ValueError("it rewrites text in another way")
        content = maps[0].get("precompiled_charsmap") if maps else None
        return base64.b64decode(content, validate=True) if content else b""
    except (ValueError, TypeError) as error:
        raise ExchangeError(
            f"the normalizer of {path / FILE} must be sentencepiece's, but is not ({error}); give "
            "a folder with a sentencepiece model."
        ) from error
