"""
What lies beside an exported model: ``heedful.json``, the rules by which it is to be searched.

No torch here; `heedful translate --engine ctranslate2` reads it on a machine that has none.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from heedful.config.renames import renamed_table
from heedful.config.schema import SearchConfig
from heedful.errors import ExchangeError, RunFolderError
from heedful.runs.folder import read_json

_FORMAT = 1


@dataclass(frozen=True)
class ExportRecord:
    """
    Say how an exported model is to be used.

    Attributes
    ----------
    search : SearchConfig
        The rules of search of the run that it was made of.
    positions : int
        Rows of its tables of positions: nothing may be longer.
    source_end : bool
        Whether the end symbol takes one of them behind the source.
    quantization : str
        Number format of the weights.
    version : str
        Of heedful, for people.
    tokenizer : str
        Fingerprint of the subwords beside it; empty in folders from before it was written.

    Notes
    -----
    `read` and `to_dict` are each other's inverse.
    """

    FILE: ClassVar[str] = "heedful.json"

    search: SearchConfig
    positions: int
    source_end: bool
    quantization: str
    version: str
    tokenizer: str = ""

    @property
    def search_within(self) -> SearchConfig:
        """The rules of search, reading no more of a source than there are positions for."""
        longest = min(self.search.max_source_length, max(1, self.positions - self.source_end))
        return self.search.model_copy(update={"max_source_length": longest})

    def to_dict(self) -> dict[str, Any]:
        """
        Give plain values for JSON.

        Returns
        -------
        dict of str to object
            One entry an attribute, and the format.

        Notes
        -----
        Goes into ``heedful.json``.
        """
        return {
            "format": _FORMAT,
            "engine": "ctranslate2",
            "heedful": self.version,
            "quantization": self.quantization,
            "positions": self.positions,
            "source_end": self.source_end,
            "tokenizer": self.tokenizer,
            "search": self.search.model_dump(mode="json"),
        }

    @classmethod
    def read(cls, folder: Path) -> "ExportRecord":
        """
        Read the record of an exported folder.

        Parameters
        ----------
        folder : Path
            What `heedful export --format ctranslate2` made.

        Returns
        -------
        ExportRecord
            Checked.

        Notes
        -----
        Raises `RunFolderError` if this is no such folder, `ExchangeError` if the file is damaged.
        """
        path = folder / cls.FILE
        if not path.is_file():
            raise RunFolderError(
                f"--engine ctranslate2 needs a folder that `heedful export --format ctranslate2` "
                f"made, but {folder} holds no {cls.FILE}; export the run first."
            )
        content = read_json(path)
        positions, search = content.get("positions"), content.get("search")
        good = (
            content.get("format") == _FORMAT
            and content.get("engine") == "ctranslate2"
            and isinstance(positions, int)
            and positions > 1
            and isinstance(content.get("source_end"), bool)
            and isinstance(search, dict)
        )
        if not good or not isinstance(positions, int) or not isinstance(search, dict):
            raise ExchangeError(
                f"{path} must say positions, source_end and search in format {_FORMAT}, but does "
                "not; it was changed, or another version wrote it: export the run again."
            )
        return cls(
            SearchConfig(**renamed_table("search", search)),
            positions,
            content["source_end"],
            str(content.get("quantization")),
            str(content.get("heedful")),
            str(content.get("tokenizer") or ""),
        )
