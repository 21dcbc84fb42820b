"""Multi30k in the folder HEEDFUL_DATA, unpacked for `heedful paper`."""

import gzip
from pathlib import Path

from benchmarks.report import data_folder
from heedful.experiments.corpus import TableCorpus, find_corpus

VOCABULARY = 4000
_PARTS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}


def multi30k(folder: Path) -> TableCorpus:
    """Write the raw English and German text of Multi30k without compression."""
    corpus = folder / "multi30k"
    corpus.mkdir(parents=True, exist_ok=True)
    for part, name in _PARTS.items():
        for language in ("en", "de"):
            packed = data_folder() / "multi30k" / "raw" / f"{name}.{language}.gz"
            (corpus / f"{part}.{language}").write_bytes(gzip.decompress(packed.read_bytes()))
    return find_corpus(corpus, "en", VOCABULARY)
