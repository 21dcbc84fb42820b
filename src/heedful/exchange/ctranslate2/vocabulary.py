"""
Vocabularies of a CTranslate2 folder, and their special tokens.

The files are ``shared_vocabulary``, or ``source_vocabulary`` and ``target_vocabulary``. Each lists
tokens in the order of their ids: one per line in ``.txt``, as JSON in ``.json``. The unknown token
is added at the end of a list that lacks it.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from heedful.errors import ExchangeError
from heedful.files import read_within
from heedful.tokenization.special_symbols import PAD, START

SIDES = ("source", "target")


def read_vocabularies(folder: Path, config: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Read the tokens of both sides. Raises `ExchangeError` if a file is missing or damaged."""
    unknown = special_token(config, "unk_token", "<unk>")
    shared = _file(folder, "shared")
    if shared is not None:
        tokens = _complete(_read(shared), unknown)
        return tokens, tokens
    vocabularies = []
    for side in SIDES:
        path = _file(folder, side)
        if path is None:
            raise ExchangeError(
                f"a folder of CTranslate2 must contain shared_vocabulary or {side}_vocabulary, as "
                f".json or .txt, but {folder} has neither; copy the whole folder."
            )
        vocabularies.append(_complete(_read(path), unknown))
    return vocabularies[0], vocabularies[1]


def special_token(config: Mapping[str, Any], name: str, usual: str) -> str:
    """Return the spelling of a special token. Raises `ExchangeError` if it is not text."""
    token = config.get(name, usual)
    if not isinstance(token, str):
        raise ExchangeError(
            f"{name} in config.json of CTranslate2 must be a token, but is {token!r}; models that "
            "expect this token from the caller cannot be imported."
        )
    return token


def distinct(tokens: Iterable[str]) -> list[str]:
    """Make token names unique, because CTranslate2 looks up ids by name."""
    seen: set[str] = set()
    names = []
    for token in tokens:
        while token in seen:
            token += "_"
        seen.add(token)
        names.append(token)
    return names


def never_written(rows: int, size: int, forbidden: str) -> list[int]:
    """List our ids of tokens that no translation may contain; they still count in the softmax."""
    return sorted({PAD, START, *map(int, forbidden.split()), *range(size, rows)})


def _file(folder: Path, side: str) -> Path | None:
    """Find the file of a vocabulary; None if there is no such file."""
    for ending in ("json", "txt"):
        path = folder / f"{side}_vocabulary.{ending}"
        if path.is_file():
            return path
    return None


def _complete(tokens: list[str], unknown: str) -> list[str]:
    """Add the unknown token if it is missing, as CTranslate2 does."""
    return tokens if unknown in tokens else [*tokens, unknown]


def _read(path: Path) -> list[str]:
    """Read a list of tokens."""
    try:
        text = read_within(path).decode()
        if path.suffix == ".txt":
            lines = text.split("\n")
            return lines[:-1] if lines[-1] == "" else lines
        tokens = json.loads(text)
    except OSError as error:
        raise ExchangeError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise ExchangeError(
            f"{path} must contain tokens in UTF-8, but does not ({error}); copy it again."
        ) from error
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise ExchangeError(f"{path} must be a JSON list of tokens, but is something else.")
    return tokens
