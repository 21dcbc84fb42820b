"""The search settings of an exported model, in ``heedful.json``; this module needs no torch."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from heedful.config.search import SearchConfig
from heedful.errors import ExchangeError, RunFolderError
from heedful.files import open_ordinary
from heedful.runs.folder import read_json
from heedful.search.length import LengthLimit
from heedful.tokenization.tokenizer import Tokenizer

_FORMAT = 1
WEIGHTS = "model.bin"
"""CTranslate2's name for the file of weights."""


@dataclass(frozen=True)
class ExportRecord:
    """The settings for using an exported model; `read` reads the values that `to_dict` returns."""

    FILE: ClassVar[str] = "heedful.json"

    search: SearchConfig
    """The search settings of the exported run."""
    positions: int
    """Number of rows in the position tables, which limits source and target lengths."""
    source_end: bool
    """Whether the source has an end symbol, which needs a position."""
    quantization: str
    """Number format of the weights."""
    version: str
    """Version of heedful that exported the model."""
    tokenizer: str = ""
    """Fingerprint of the tokenizer in the folder; empty in folders of older versions."""
    weights: str = ""
    """SHA-256 of the file of weights; empty in folders of older versions."""
    reading: str = "exact"
    """Value of the run's `data.reading`, which determines how lines are read."""

    @property
    def search_within(self) -> SearchConfig:
        """The search settings, limited to texts that fit the table of positions."""
        longest = min(self.search.max_source_length, max(1, self.positions - self.source_end))
        limit, most = LengthLimit.parse(self.search.max_length), self.positions - 1
        max_length = self.search.max_length if limit.relative else str(min(limit.extra, most))
        return self.search.model_copy(
            update={"max_source_length": longest, "max_length": max_length}
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values for ``heedful.json``."""
        reading = {} if self.reading == "exact" else {"reading": self.reading}
        return {
            "format": _FORMAT,
            "engine": "ctranslate2",
            "heedful": self.version,
            "quantization": self.quantization,
            "positions": self.positions,
            "source_end": self.source_end,
            "tokenizer": self.tokenizer,
            "weights": self.weights,
            "search": self.search.model_dump(mode="json"),
            **reading,
        }

    @classmethod
    def read(cls, folder: Path) -> "ExportRecord":
        """Read the record of an exported folder."""
        path = folder / cls.FILE
        if not path.is_file():
            raise RunFolderError(
                f"--engine ctranslate2 needs a folder that `heedful export --format ctranslate2` "
                f"wrote, but {folder} has no {cls.FILE}; export the run first."
            )
        content = read_json(path)
        positions, search = content.get("positions"), content.get("search")
        if (
            content.get("format") != _FORMAT
            or content.get("engine") != "ctranslate2"
            or not isinstance(positions, int)
            or positions < 2
            or not isinstance(content.get("source_end"), bool)
            or not isinstance(search, dict)
        ):
            raise ExchangeError(
                f"{path} must contain positions, source_end and search in format {_FORMAT}, but "
                "does not; it was changed, or another version wrote it: export the run again."
            )
        return cls(
            SearchConfig(**search),
            positions,
            content["source_end"],
            str(content.get("quantization")),
            str(content.get("heedful")),
            str(content.get("tokenizer") or ""),
            str(content.get("weights") or ""),
            "text" if content.get("reading") == "text" else "exact",
        )

    def check(self, folder: Path, tokenizer: Tokenizer) -> None:
        """Raise `RunFolderError` if the tokenizer or the weights are from another export."""
        wrong = ""
        if self.tokenizer not in ("", tokenizer.fingerprint):
            wrong = "the tokenizer"
        elif (folder / WEIGHTS).exists() and self.weights not in ("", digest_of_weights(folder)):
            wrong = WEIGHTS
        if wrong:
            raise RunFolderError(
                f"the model in {folder} must have the tokenizer and weights of its export, but "
                f"{wrong} differs; export the run again."
            )


def digest_of_weights(folder: Path) -> str:
    """Compute the SHA-256 of the file of weights; a gigabyte takes about a second."""
    with open_ordinary(folder / WEIGHTS) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
