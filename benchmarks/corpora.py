"""Corpora in the folder HEEDFUL_DATA, unpacked for `heedful paper`."""

import gzip
import lzma
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.report import data_folder
from heedful.experiments.corpus import TableCorpus, find_corpus

VOCABULARY = 4000
_PARTS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
_TATOEBA = {"train": "train", "valid": "dev", "test": "test"}


def multi30k(folder: Path) -> TableCorpus:
    """Unpack the raw English and German text of Multi30k for `heedful paper`."""
    packed = {part: f"multi30k/raw/{name}" for part, name in _PARTS.items()}
    return _unpack(folder / "multi30k", packed, "de", "gz", gzip.decompress)


def tatoeba(folder: Path) -> TableCorpus:
    """Unpack the English and French text of Tatoeba for `heedful paper`."""
    packed = {part: f"tatoeba-en-fr/{name}" for part, name in _TATOEBA.items()}
    return _unpack(folder / "tatoeba", packed, "fr", "xz", lzma.decompress)


def _unpack(
    folder: Path,
    packed: Mapping[str, str],
    target: str,
    ending: str,
    decompress: Callable[[bytes], bytes],
) -> TableCorpus:
    """Write the English and target files of a corpus in HEEDFUL_DATA as uncompressed text."""
    data = data_folder()
    folder.mkdir(parents=True, exist_ok=True)
    for part, name in packed.items():
        for language in ("en", target):
            content = decompress((data / f"{name}.{language}.{ending}").read_bytes())
            (folder / f"{part}.{language}").write_bytes(content)
    return find_corpus(folder, "en", VOCABULARY)
