"""
Names of models on Hugging Face's hub, which are allowed in place of a run folder.

::

    ORG/NAME                the revision with which this name was first used; initially `main`
    ORG/NAME@REVISION       a branch, a tag or a commit

A name that exists as a path is read as a path, and so is a name that begins with `./`. A name whose
first part is an existing folder or `runs` is also a path, because its last part may be misspelled.
If a name has a revision and does not exist as a path, it is a name on the hub, whatever its first
part. `heedful.exchange.hub` converts the model once, and keeps the run.
"""

import re
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from pkgutil import resolve_name

RECORD = "hub.json"
"""The file of a converted run that records its origin."""
# The function that converts models is in a higher-level package, which is loaded only for names on
# the hub.
_FETCH = "heedful.exchange.hub.fetch:fetch_run"
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}"
_NAME = re.compile(rf"({_PART}/{_PART})(?:@([A-Za-z0-9_][A-Za-z0-9_./-]{{0,254}}))?")
# The address of a model's web page; `Path` has replaced its two slashes with a single slash.
_PAGE = re.compile(rf"(?:https?|hf):/+(?:[\w.-]+\.[a-z]+(?::\d+)?/)?({_PART}/{_PART})(?:/|$)")
_BARE = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")
# The hub does not allow these names. With them, two names could share one cache folder.
_NO_REPO = re.compile(r"--|[.-](?:/|$)|\.git$|.{97}")


@dataclass(frozen=True)
class HubName:
    """A model on the hub, and one of its revisions."""

    repo: str
    """Organization and name."""
    revision: str = "main"
    """Branch, tag or commit."""

    @classmethod
    def parse(cls, text: str) -> "HubName | None":
        """Parse ORG/NAME or ORG/NAME@REVISION; None for anything else."""
        match = _NAME.fullmatch(text)
        if match is None or ".." in text or _NO_REPO.search(match[1]):
            return None
        return cls(match[1], match[2] or "main")

    @property
    def title(self) -> str:
        """The name of the model without its organization."""
        return self.repo.partition("/")[2]

    def __str__(self) -> str:
        """Format the name so that `parse` can read it."""
        return self.repo if self.revision == "main" else f"{self.repo}@{self.revision}"


def hub_name(path: str | PathLike[str]) -> HubName | None:
    """Parse a name on the hub; None for an existing path, and for text that cannot be a name."""
    text, place = fspath(path), Path(path)
    name = HubName.parse(text)
    if name is None or place.exists():
        return None
    is_local = place.parent.exists() or place.parts[0] == "runs"
    return None if is_local and "@" not in text else name


def run_path(text: str) -> Path:
    """Parse a path from the command line; a missing `./ORG/NAME` becomes absolute."""
    path = Path(text)
    is_hidden = text.startswith("./") and HubName.parse(str(path)) is not None
    return path.absolute() if is_hidden and not path.exists() else path


def advice_on_missing(path: Path) -> str:
    """Return advice about a path that does not exist."""
    text = str(path)
    if page := _PAGE.match(text):
        return f"write {page[1]} to name a model on Hugging Face's hub"
    if _BARE.fullmatch(text):
        return (
            "check the path. The name of a model on Hugging Face's hub contains an organization, "
            "as in google-t5/t5-small"
        )
    if HubName.parse(text) is None or "@" in text or path.parts[0] == "runs":
        return "check the path"
    return f"check the path. {path}@main always names a model on Hugging Face's hub, not a folder"


def run_folder(path: str | PathLike[str]) -> Path:
    """
    Return a path, or the run folder of a model on the hub, which is converted at its first use.

    Raises `MissingExtra` without huggingface_hub, `DownloadError` if the hub cannot be reached, and
    `ExchangeError` for models that are missing, not accessible or not supported.
    """
    name = hub_name(path)
    if name is None:
        return Path(path)
    return resolve_name(_FETCH)(name)


def pinned_name(path: str | PathLike[str]) -> str:
    """Return a path unchanged, or a name on the hub with the commit of the converted model."""
    name = hub_name(path)
    if name is None:
        return fspath(path)
    return str(HubName(name.repo, run_folder(path).parent.name))
