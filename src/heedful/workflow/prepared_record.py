"""
``prepared.json``: what a folder of prepared text says of itself.

Its settings and files, so that preparing can go on and training knows what it takes over.
"""

import re
from pathlib import Path
from typing import Any

from heedful.checkpoint.rundir import read_json
from heedful.config.renames import renamed_settings
from heedful.config.schema import RunConfig
from heedful.errors import RunFolderError
from heedful.workflow.material import Sizes

RECORD = "prepared.json"
"""Settings, files, and what came of them."""
FORMAT = 1
"""Number of the format, in `RECORD`."""
_SOURCE = re.compile(r"([\w-]+\.)?source").fullmatch


def read_record(path: Path) -> dict[str, Any]:
    """
    Read and check ``prepared.json``.

    Parameters
    ----------
    path : Path
        A prepared folder.

    Returns
    -------
    dict of str to Any
        With the fields “complete”, “settings” and “corpus”.

    Notes
    -----
    Raises `RunFolderError` if it is something else. The values of settings are checked where they
    are used, as those of any other source are.
    """
    record = read_json(path / RECORD)
    corpus = record.get("corpus")
    expected = (
        record.get("format") == FORMAT
        and isinstance(record.get("complete"), bool)
        and isinstance(record.get("settings"), dict)
        and isinstance(corpus, dict)
        and all(isinstance(files, list) for files in corpus.values())
        and all(_is_entry(file) for files in corpus.values() for file in files)
    )
    if not expected:
        raise RunFolderError(
            f"{path / RECORD} must have the fields of format {FORMAT} (complete, settings, "
            "corpus), but it differs: it was changed, or a newer version wrote it; prepare the "
            "text again into another folder, or upgrade heedful."
        )
    record["settings"] = renamed_settings(record["settings"])
    return record


def names_of(corpus: Sizes) -> list[str]:
    """
    Read the names of the corpora off the list of their files.

    Parameters
    ----------
    corpus : dict
        As `Material.files` lists them.

    Returns
    -------
    list of str
        In order; one empty name if there is only one corpus.

    Notes
    -----
    A prepared folder may come from a stranger: a name that would lead out of it is none.
    """
    found = [side.removesuffix("source").removesuffix(".") for side in corpus if _SOURCE(side)]
    return found or [""]


def data_settings(config: RunConfig) -> dict[str, Any]:
    """
    List the settings that a prepared folder depends on.

    Parameters
    ----------
    config : RunConfig
        Settings.

    Returns
    -------
    dict of str to Any
        Those of the table ``data`` and the seed, by their dotted names.

    Notes
    -----
    The seed chooses the lines that subwords are learned from where there are very many.
    """
    data = {f"data.{key}": value for key, value in config.to_dict()["data"].items()}
    return {**data, "train.seed": config.train.seed}


def _is_entry(entry: object) -> bool:
    """Tell whether this is how a file, or the weight of a corpus, is listed."""
    if not isinstance(entry, dict):
        return False
    if entry.keys() == {"weight"}:
        return isinstance(entry["weight"], int | float) and entry["weight"] > 0
    return {"file", "bytes"} <= entry.keys() <= {"file", "bytes", "part", "tag"}
