"""
The TOML file that describes several training corpora.

::

    [europarl]
    source = "europarl/*.en.xz"
    target = "europarl/*.fr.xz"
    weight = 2

    [subtitles]
    source = "subtitles.en.gz"
    target = "subtitles.fr.gz"
    weight = 1
    tag = "fr"

File names are relative to the folder of this file. The share of a corpus in every epoch is
proportional to its `weight`, which is at most 1e100. Without weights, `data.mixing_temperature` and
the sizes determine the shares. A tag, here ``>>fr<<``, is prepended to every source line and
selects the target language of a multilingual model.
"""

import glob
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from reprlib import repr as shorten
from typing import Any

from heedful.data.mixing import MOST_WEIGHT, is_weight
from heedful.errors import SettingError
from heedful.files import read_text_within
from heedful.text.corpus import Corpus, expand
from heedful.text.file_formats import split_name

_NAME = re.compile(r"[\w-]+")
_KEYS = {"source", "target", "weight", "tag"}


@dataclass(frozen=True)
class CorpusPart:
    """One corpus of a run; a run on one source and one target file has one corpus."""

    name: str
    """Its name in the corpora file; empty without such a file."""
    corpus: Corpus
    """Its text."""
    weight: float | None = None
    """Its weight in every epoch, relative to the weights of the other corpora."""


def read_corpora(path: Path) -> list[CorpusPart]:
    """Read a corpora file; raise `SettingError` for bad content, `TextError` for missing text."""
    tables = _parse(path)
    parts = [_part(path, name, table) for name, table in tables.items()]
    if not parts:
        raise SettingError(f"{path} must describe at least one corpus, but describes none.")
    weighed = [part.name for part in parts if part.weight is not None]
    if weighed and len(weighed) < len(parts):
        raise SettingError(
            f"{path} must give a weight to every corpus or to none, but gives one only to "
            f"{', '.join(weighed)}."
        )
    return parts


def _parse(path: Path) -> dict[str, Any]:
    """Parse the TOML file."""
    try:
        return tomllib.loads(read_text_within(path))
    except OSError as error:
        raise SettingError(
            f"--corpora must name a readable TOML file, but {path} cannot be read: "
            f"{error.strerror}."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} must be a TOML file in UTF-8, but is not: {error}.") from None


def _part(path: Path, name: str, table: object) -> CorpusPart:
    """Check the table of one corpus, and find its text."""
    where = f"{path}, [{name}]"
    if not isinstance(table, Mapping) or not _NAME.fullmatch(name):
        raise SettingError(
            f"{path} must hold one table for each corpus, named with letters, digits, - and _, but "
            f"{name!r} is not a table or has other characters."
        )
    if unknown := sorted(table.keys() - _KEYS):
        raise SettingError(
            f"{where} may have only source, target, weight and tag, but has {', '.join(unknown)}."
        )
    weight, tag = table.get("weight"), table.get("tag", "")
    if weight is not None and not is_weight(weight):
        raise SettingError(
            f"{where}: weight must be a number above 0 and at most {MOST_WEIGHT:g}, but is "
            f"{shorten(weight)}; only the ratios of the weights count."
        )
    if not isinstance(tag, str) or not re.fullmatch(r"[\w-]*", tag):
        raise SettingError(
            f"{where}: tag must be a code of letters, digits, - and _, such as fr, but is {tag!r}."
        )
    source, target = (list(_files(path, where, table, side)) for side in ("source", "target"))
    marked = [replace(text, tag=f">>{tag}<<" if tag else "") for text in expand(source)]
    corpus = Corpus(marked, expand(target))
    return CorpusPart(name, corpus, None if weight is None else float(weight))


def _files(path: Path, location: str, table: Mapping[str, Any], side: str) -> Iterator[str]:
    """Resolve the names of one side, relative to the corpora file; its folder is no pattern."""
    names = table.get(side)
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, Sequence) or not names or not all(isinstance(n, str) for n in names):
        raise SettingError(
            f"{location}: {side} must be a file name or a list of file names, but is "
            f"{shorten(table.get(side))}."
        )
    for name in names:
        file = path.parent / name
        if glob.has_magic(str(file)) and not os.path.exists(split_name(str(file))[0]):
            file = Path(glob.escape(str(path.parent)), name)
        yield str(file)
