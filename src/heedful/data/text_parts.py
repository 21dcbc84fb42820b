"""The parts of a text, written to one folder: train, valid and test in two languages."""

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from heedful.errors import TextError
from heedful.files import read_within, write_whole, writing

Pair = tuple[str, str]
Sizes = tuple[int, int, int]
"""Numbers of training, validation and test pairs."""
PARTS = ("train", "valid", "test")


def split(pairs: Iterable[Pair], sizes: Sizes) -> dict[str, list[Pair]]:
    """Divide pairs into test, valid and train, in this order."""
    rest = iter(pairs)
    parts = {
        name: list(islice(rest, size)) for name, size in reversed([*zip(PARTS, sizes, strict=True)])
    }
    return {name: parts[name] for name in PARTS}


def side_files(parts: Mapping[str, Sequence[Pair]], languages: Pair) -> dict[str, list[str]]:
    """Convert the parts to lists of lines by file name, such as “train.en”."""
    return {
        f"{name}.{language}": [pair[side] for pair in part]
        for name, part in parts.items()
        for side, language in enumerate(languages)
    }


def write_lines(folder: Path, files: Mapping[str, Sequence[str]], origin: str) -> None:
    """Write files of lines; raises `TextError` if that would replace other content."""
    contents = {
        folder / name: "".join(f"{line}\n" for line in lines).encode()
        for name, lines in files.items()
    }
    for path, content in contents.items():
        if path.exists() and (not path.is_file() or read_within(path, sys.maxsize) != content):
            raise TextError(
                f"{path} must be a new file or contain the text of {origin}, but has other "
                "content; name another folder, or move the file away."
            )
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in contents.items():
            write_whole(path, content)


def format_training(
    recipe: str, name: str, folder: Path, languages: Sequence[str], texts: Sequence[str]
) -> str:
    """
    Format the command that trains on files such as “train.en” in a folder.

    `texts`: names of the training and the validation text, without the language; empty for none.
    """
    words = ["heedful", "train", recipe]
    for option, text in zip(("--", "--valid-"), texts, strict=True):
        for side, language in zip(("source", "target"), languages, strict=False) if text else ():
            words += [f"{option}{side}", str(folder / f"{text}.{language}")]
    return shlex.join([*words, "--out", f"runs/{name}"])
