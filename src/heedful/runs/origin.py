"""
The model on the hub that a run descends from.

A run may be converted from the hub (hub.json) or fine-tuned from another run (origin.json). It may
also extend the vocabulary of another run (state.json of step 0). A folder that no longer exists
ends the search.
"""

import re
from pathlib import Path

from heedful.errors import RunFolderError
from heedful.runs.checkpoint import STATE
from heedful.runs.folder import RunFolder, read_json
from heedful.runs.hub_names import RECORD, HubName

FILE = "origin.json"
"""The file in which a fine-tuned run names its pretrained run."""
ORIGIN = "origin"
"""The entry that names the original run, in the state of a run with an extended vocabulary."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
# Maximum number of runs in a chain of descent.
_MOST = 20


def base_model(folder: Path) -> str:
    """Name the model on the hub that a run folder descends from; empty if it is not known."""
    for _ in range(_MOST):
        if (folder / RECORD).is_file():
            name = HubName.parse(str(_read(folder / RECORD, "name")))
            return name.repo if name else ""
        before = _read(folder / FILE, "run")
        before = before or _read(RunFolder(folder).checkpoint(0) / STATE, ORIGIN)
        if not before:
            return ""
        name = HubName.parse(before)
        if name and _COMMIT.fullmatch(name.revision):
            return name.repo
        folder = Path(before)
    return ""


def _read(path: Path, key: str) -> str:
    """Read a text field of a record; empty if it is missing."""
    try:
        value = read_json(path).get(key) if path.is_file() else None
    except RunFolderError:  # the error concerns an ancestor, not the described run
        return ""
    return value if isinstance(value, str) else ""
