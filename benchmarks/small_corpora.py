"""The corpora of `benchmarks.quality`, written as plain text."""

import gzip
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.report import data_folder
from benchmarks.training import text_files

_OPENERS = {".gz": gzip.open, ".xz": lzma.open}


class Part(NamedTuple):
    """Lines of a corpus for training, validation or test."""

    files: str
    """Glob of the files, without language and ending."""
    lines: slice = slice(None)


class SmallCorpus(NamedTuple):
    """A corpus, and the settings of its training."""

    title: str
    folder: str
    """Folder below HEEDFUL_DATA."""
    languages: tuple[str, str]
    """Suffixes of source and target files."""
    parts: Mapping[str, Part]
    """`train`, `valid` and `test`."""
    lengths: tuple[int, int]
    """Mean numbers of subwords of a sentence, their end symbols included."""
    settings: tuple[str, ...] = ()
    """Settings that differ from those of the chosen trial."""
    minutes: float = 60.0
    spaces: str = "kept"
    """Spaces of the target text: kept, removed, or removed from what is scored (scores)."""

    def write(self, folder: Path) -> dict[str, list[Path]]:
        """Write the source and the target text of each part; return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        return {
            name: [self._write(folder / name, language, part) for language in self.languages]
            for name, part in self.parts.items()
        }

    def _write(self, path: Path, language: str, part: Part) -> Path:
        """Write one side of a part."""
        folder, name = data_folder() / self.folder, f"{part.files}.{language}.*"
        files, lines = sorted(folder.glob(name)), list[str]()
        if not files:
            raise SystemExit(
                f"{folder} must contain {name}, but does not; set HEEDFUL_DATA to the folder of "
                "the corpora"
            )
        for packed in files:
            with _OPENERS[packed.suffix](packed, "rt", encoding="utf-8", newline="\n") as file:
                lines += file
        if language == self.languages[1] and self.spaces == "removed":
            lines = [line.replace(" ", "") for line in lines]
        path = path.with_name(f"{path.name}.{language}")
        path.write_text("".join(lines[part.lines]), encoding="utf-8")
        return path

    def score_form(self, line: str) -> str:
        """Convert a line of the target text to the form that is scored."""
        return line.replace(" ", "") if self.spaces == "scores" else line


def arguments_of(files: Mapping[str, list[Path]]) -> list[str | Path]:
    """Return the files of training and validation as command-line arguments."""
    return text_files(files["train"], files["valid"])


_PARTS = {"train": Part("train"), "valid": Part("dev"), "test": Part("test")}
_SMALL = ("data.vocabulary_size=8000",)
_JAPANESE = ("tanaka-en-ja", ("en", "ja"), _PARTS)
CORPORA = {
    "multi30k": SmallCorpus(
        "Multi30k, English to German",
        "multi30k/raw",
        ("en", "de"),
        {"train": Part("train"), "valid": Part("val"), "test": Part("test_2016_flickr")},
        (14, 14),
    ),
    "tatoeba-en-de": SmallCorpus(
        "Tatoeba, English to German", "tatoeba-en-de", ("en", "de"), _PARTS, (9, 9), _SMALL
    ),
    "tatoeba-en-fr": SmallCorpus(
        "Tatoeba, English to French", "tatoeba-en-fr", ("en", "fr"), _PARTS, (9, 9), _SMALL
    ),
    "tanaka-characters": SmallCorpus(
        "Tanaka, English to Japanese, characters",
        *_JAPANESE,
        (35, 16),
        ("data.subwords=character", "data.subword_sampling=0"),
        spaces="removed",
    ),
    "tanaka-words": SmallCorpus(
        "Tanaka, English to Japanese, subwords of segmented words",
        *_JAPANESE,
        (10, 13),
        _SMALL,
        spaces="scores",
    ),
    # The test set has no name of its own; these lines of dev are from sittings outside train.
    "europarl-fr-en": SmallCorpus(
        "Europarl, French to English, half a million pairs",
        "europarl-fr-en",
        ("fr", "en"),
        {
            "train": Part("train.0[0-4]"),
            "valid": Part("dev", slice(1000)),
            "test": Part("dev", slice(1000, None)),
        },
        (34, 31),
        ("data.vocabulary_size=16000", "model.dropout=0.1"),
        105.0,
    ),
}
