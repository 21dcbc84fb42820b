"""
Requests to the hub: metadata and files of bounded size, and uploads through huggingface_hub.

Files are stored in the cache of huggingface_hub, which other programs share. Every file is compared
with the digest that the hub lists for it: SHA-256 for large files, git's SHA-1 for small ones.
HF_ENDPOINT, HF_HUB_OFFLINE, HF_HUB_CACHE, HF_HOME and the token have the same meaning as in
huggingface_hub.
"""

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from heedful.errors import DownloadError, ExchangeError, HeedfulError, StorageError
from heedful.exchange.card.edits import is_edited
from heedful.exchange.card.model_card import CARD
from heedful.exchange.extras import import_extra
from heedful.exchange.hub.cache import COMMIT, say
from heedful.exchange.hub.failures import explain
from heedful.exchange.hub.transfer import SECONDS, digest_of, download, link, read_facts
from heedful.exchange.huggingface.files import TEXT_FILES
from heedful.exchange.huggingface.weights import LAYOUTS, SHARDS
from heedful.files import make_folder, read_within, write_whole
from heedful.runs.hub_names import HubName

_TRUE = {"1", "ON", "YES", "TRUE"}
_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True)
class HubFile:
    """A file of a model, as the hub lists it."""

    size: int | None
    """Size in bytes; None if offline."""
    digest: str
    """SHA-256, or git's SHA-1 of a small file."""


@dataclass(frozen=True)
class HubModel:
    """A commit of a model."""

    repo: str
    revision: str
    """Revision that was described."""
    commit: str
    license: str
    """License that the model card names; empty if it names none, or if offline."""
    files: dict[str, HubFile]
    """Files by name, without files in subfolders."""


class HubClient:
    """A client of the hub at HF_ENDPOINT, by default huggingface.co; it needs huggingface_hub."""

    def __init__(self, purpose: str) -> None:
        self._library = import_extra("huggingface_hub", purpose, "hub")
        self.endpoint = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
        self.shown = _without_password(self.endpoint)
        try:
            _check_token(self._library.get_token())
        except OSError as error:
            raise StorageError(
                f"the token for the hub must be readable, but {error.filename} is not: "
                f"{error.strerror}. Set HF_HOME to another folder."
            ) from error
        self.is_offline = any(
            os.environ.get(name, "").upper() in _TRUE
            for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
        )
        self._downloads = _downloads_folder(import_module("huggingface_hub.constants").HF_HUB_CACHE)

    def describe(self, name: HubName) -> HubModel:
        """Request the commit, the license and the files of a revision."""
        if self.is_offline:
            return self._describe_downloaded(name)
        revision = quote(name.revision, safe="")
        url = f"{self.endpoint}/api/models/{name.repo}/revision/{revision}?blobs=true"
        with self._as_paragraph(name):
            facts = read_facts(url)
        commit = facts.get("sha")
        if not isinstance(commit, str) or not COMMIT.fullmatch(commit):
            raise DownloadError(
                f"{self.shown} must name the commit of {name}, but does not; check HF_ENDPOINT."
            )
        return HubModel(name.repo, name.revision, commit, _license(facts), _files(facts))

    def fetch(self, model: HubModel, file: str) -> Path:
        """
        Download a file unless it is cached with its digest, and return its path.

        Raises `DownloadError` if the download has another size or digest.
        """
        listed, name = model.files[file], HubName(model.repo, model.commit)
        folder = self._folder(model)
        place, content = (
            folder / "snapshots" / model.commit / file,
            folder / "blobs" / listed.digest,
        )
        if _has_digest(place, listed.digest):
            return place
        make_folder(content.parent)
        if not _has_digest(content, listed.digest):
            content.unlink(missing_ok=True)
            if self.is_offline or listed.size is None:
                place.unlink(missing_ok=True)
                raise DownloadError(
                    f"{file} of {name} must have the digest {listed.digest}, but the copy on this "
                    "disk differed and was deleted; use the model once without HF_HUB_OFFLINE or "
                    "TRANSFORMERS_OFFLINE."
                )
            url = f"{self.endpoint}/{model.repo}/resolve/{model.commit}/{quote(file)}"
            with self._as_paragraph(name):
                download(url, content, listed.size, listed.digest, f"{file} of {name}")
        link(place, content)
        return place

    def record(self, model: HubModel) -> None:
        """Record in the cache which commit the revision of a model is, for uses offline."""
        if model.revision != model.commit and ".." not in model.revision.split("/"):
            place = self._folder(model) / "refs" / model.revision
            # in a cache that cannot be written, the model is still complete
            with suppress(OSError):
                place.parent.mkdir(parents=True, exist_ok=True)
                write_whole(place, model.commit.encode())

    def _folder(self, model: HubModel) -> Path:
        """Return the folder of a model in the cache of huggingface_hub."""
        return self._downloads / f"models--{model.repo.replace('/', '--')}"

    def api(self) -> Any:
        """Create the client of huggingface_hub."""
        return self._library.HfApi(endpoint=self.endpoint, library_name="heedful")

    def require_token(self, name: HubName) -> None:
        """Raise `ExchangeError` if there is no token, before minutes are spent on an export."""
        if self._library.get_token() is None:
            raise ExchangeError(
                f"uploading {name.repo} needs a token with write access; log in with `hf auth "
                "login`, or set HF_TOKEN."
            )

    def upload(self, folder: Path, name: HubName, *, private: bool, message: str) -> str:
        """
        Upload a folder, to a new repository if needed; return the URL of the commit.

        Weights and tokenizer files of another model in the repository are deleted, because
        transformers would read them; the history keeps them. A card that was edited stays. Raises
        `ExchangeError` if `private` is requested for a public repository.
        """
        with self._as_paragraph(name), self._progress():
            api = self.api()
            api.create_repo(name.repo, private=private, exist_ok=True)
            if private and not api.model_info(name.repo, timeout=SECONDS).private:
                raise ExchangeError(
                    f"--private needs a private repository, but {name.repo} exists and is public; "
                    f"change that on {self.shown}/{name.repo}/settings, or leave --private out."
                )
            if name.revision != "main":
                api.create_branch(name.repo, branch=name.revision, exist_ok=True)
            self._keep_edited_card(folder, name)
            send = partial(
                api.upload_folder,
                repo_id=name.repo,
                folder_path=folder,
                revision=name.revision,
                commit_message=message,
                delete_patterns=[*TEXT_FILES, *LAYOUTS, *SHARDS],
            )
            commit = _interruptible(send)
        return str(commit.commit_url)

    def _keep_edited_card(self, folder: Path, name: HubName) -> None:
        """Leave the card out of an upload that would replace somebody's work."""
        model = self.describe(name)
        if CARD in model.files and is_edited(read_within(self.fetch(model, CARD))):
            (folder / CARD).unlink()
            say(
                f"{name}: README.md was edited, or written by another program or an earlier "
                "heedful, so it stays as it is; delete it on the hub to upload a new model card."
            )

    def _describe_downloaded(self, name: HubName) -> HubModel:
        """Describe the cached files of a revision; their digests are file names in the cache."""
        with self._as_paragraph(name):
            config = Path(
                self._library.hf_hub_download(
                    name.repo,
                    "config.json",
                    revision=name.revision,
                    cache_dir=self._downloads,
                    local_files_only=True,
                )
            )
        files = {}
        for path in sorted(config.parent.iterdir()):
            digest = path.resolve().name
            if path.is_file() and _DIGEST.fullmatch(digest):
                files[path.name] = HubFile(None, digest)
        return HubModel(name.repo, name.revision, config.parent.name, "", files)

    @contextmanager
    def _progress(self) -> Iterator[None]:
        """Show progress bars only on a terminal."""
        is_shown = sys.stderr is not None and sys.stderr.isatty()
        utils = import_module("huggingface_hub.utils")
        before = utils.are_progress_bars_disabled()
        if not is_shown:
            utils.disable_progress_bars()
        try:
            yield
        finally:
            if not is_shown and not before:
                utils.enable_progress_bars()

    @contextmanager
    def _as_paragraph(self, name: HubName) -> Iterator[None]:
        """Convert exceptions of the library to errors with a message of one paragraph."""
        try:
            yield
        except HeedfulError:
            raise
        except Exception as error:
            raise explain(error, name, self.shown, self.is_offline) from error


def _interruptible(work: Callable[[], Any]) -> Any:
    """
    Call a function in a thread, so that Ctrl-C can end the wait for its result.

    The library sends files in threads, and waits for these threads without a time limit.
    """
    result: Future[Any] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    # A signal that arrives just before a wait does not end it, so no wait is long.
    while thread.is_alive():
        thread.join(1.0)
    return result.result()


def _without_password(endpoint: str) -> str:
    """
    Remove user, password and query from the address, because messages and records show it.

    Raises `DownloadError` if it is not an address.
    """
    try:
        parts = urlsplit(endpoint)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            host = parts.netloc.rpartition("@")[2]
            return parts._replace(netloc=host, query="", fragment="").geturl()
    except ValueError:
        pass
    raise DownloadError(
        "HF_ENDPOINT must be the address of a hub, such as https://huggingface.co, but is not; "
        "correct it or unset it."
    )


def _check_token(token: str | None) -> None:
    """Refuse a token that no request can contain; the message does not show the token."""
    if token is not None and not (token.isascii() and token.isprintable() and len(token) < 4096):
        raise ExchangeError(
            "the token for the hub must consist of at most 4,095 printable ASCII characters, but "
            "does not; correct HF_TOKEN, or log in again."
        )


def _has_digest(path: Path, digest: str) -> bool:
    """Return whether a file exists and has a given digest."""
    return path.is_file() and digest_of(path, digest) == digest


def _license(facts: dict[str, Any]) -> str:
    """Read the license that a model card names; empty if the card names none."""
    card = facts.get("cardData")
    named = [card.get(key) for key in ("license_name", "license")] if isinstance(card, dict) else []
    return next((name for name in named if isinstance(name, str) and name), "")


def _files(facts: dict[str, Any]) -> dict[str, HubFile]:
    """Read size and digest of each file that has both and is not in a subfolder."""
    files = {}
    listed = facts.get("siblings")
    for file in listed if isinstance(listed, list) else []:
        if not isinstance(file, dict):
            continue
        large = file.get("lfs")
        digest = large.get("sha256") if isinstance(large, dict) else file.get("blobId")
        name, size = file.get("rfilename"), file.get("size")
        if not isinstance(name, str) or not isinstance(digest, str) or type(size) is not int:
            continue
        if "/" not in name and size >= 0 and _DIGEST.fullmatch(digest):
            files[name] = HubFile(size, digest)
    return files


def _downloads_folder(usual: str) -> Path:
    """Find the library's cache in the current environment, which the library reads only once."""
    for variable, part in (("HF_HUB_CACHE", ""), ("HUGGINGFACE_HUB_CACHE", ""), ("HF_HOME", "hub")):
        if place := os.environ.get(variable):
            return Path(os.path.expandvars(place)).expanduser() / part
    return Path(usual)
