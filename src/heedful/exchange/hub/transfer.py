"""
Bounded responses of the hub: metadata in JSON, and files of the listed size and digest.

huggingface_hub names a cached file after a header of the response, and writes all data that it
receives. A malicious mirror could thus choose a path outside the cache or fill the disk. Here, a
file is named after its listed digest, and gets this name only if its content has this digest. The
cache has the library's layout::

    models--ORG--NAME/blobs/DIGEST                the content
    models--ORG--NAME/blobs/DIGEST.incomplete     bytes so far; the next attempt appends
    models--ORG--NAME/snapshots/COMMIT/FILE       a link to the content
    models--ORG--NAME/refs/REVISION               the commit of a branch or tag

Requests go through the library's session, which follows redirects but does not send the token to
other hosts.
"""

import fcntl
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import FileIO
from pathlib import Path
from typing import Any

from heedful.errors import DownloadError, HeedfulError
from heedful.files import is_at, make_folder, open_ordinary, writing

SECONDS = 30.0
"""Maximum number of seconds without data from the server."""
_LARGEST_FACTS = 1 << 25
_CHUNK = 1 << 18
# Maximum number of consecutive attempts without new bytes.
_ATTEMPTS = 4
_KEPT = "downloaded data is kept"


def read_facts(url: str) -> dict[str, Any]:
    """Request a JSON object; `ValueError` if the response is too large or not an object."""
    content = b""
    with _answer(url) as response:
        for chunk in response.iter_raw(_CHUNK):
            content += chunk
            if len(content) > _LARGEST_FACTS:
                raise ValueError(f"the answer has more than {_LARGEST_FACTS >> 20} MiB")
    facts = json.loads(content)
    if not isinstance(facts, dict):
        raise ValueError("the answer is not a JSON object")
    return facts


def download(url: str, place: Path, size: int, digest: str, title: str) -> None:
    """
    Download a file to a path, unless another process has downloaded it meanwhile.

    A file with a different digest is downloaded once more. `title`: name of the file in messages.
    Raises `DownloadError` if a file differs again or is too large, and `StorageError` if it cannot
    be written.
    """
    make_folder(place.parent)
    part = place.with_name(f"{place.name}.incomplete")
    for _ in range(2):
        with _own(part) as file:
            if place.is_file():
                part.unlink()
                return
            _fill(file, url, size, title)
            is_right = digest_of(part, digest) == digest
            with writing(place.parent, _KEPT):
                if is_right:
                    os.fsync(file.fileno())
                    part.replace(place)
                    return
                part.unlink()
    raise DownloadError(
        f"{title} must have the digest {digest}, but the download has a different one; it was "
        "changed in transit and has been deleted. Try again."
    )


def link(place: Path, content: Path) -> None:
    """Create a link to a file, or a copy if links are not possible."""
    make_folder(place.parent)
    temporary_file = place.with_name(f".{place.name}.{os.getpid()}.partial")
    with writing(place.parent, _KEPT):
        temporary_file.unlink(missing_ok=True)
        try:
            temporary_file.symlink_to(os.path.relpath(content, place.parent))
        except OSError:
            shutil.copyfile(content, temporary_file)
        temporary_file.replace(place)


def digest_of(path: Path, like: str) -> str:
    """Compute the digest of a file with the hash function of `like`: SHA-256, or git's SHA-1."""
    with open_ordinary(path) as file:
        if len(like) == 64:
            return hashlib.file_digest(file, "sha256").hexdigest()
        size = os.fstat(file.fileno()).st_size
        # Git hashes a header with the content.
        return hashlib.file_digest(
            file, lambda: hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        ).hexdigest()


@contextmanager
def _answer(url: str, start: int = 0) -> Iterator[Any]:
    """Request the bytes of a file after an offset, and open the response."""
    utils = import_module("huggingface_hub.utils")
    headers = {**utils.build_hf_headers(library_name="heedful"), "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    with utils.http_stream_backoff(
        "GET",
        url,
        headers=headers,
        timeout=SECONDS,
        retry_on_exceptions=(),
        retry_on_status_codes=(),
    ) as response:
        if response.is_error:
            # The library would read the whole response, however long, to quote it.
            next(response.iter_raw(_CHUNK), None)
        utils.hf_raise_for_status(response)
        if response.status_code not in (200, 206):
            raise ValueError(f"the answer has the status {response.status_code}")
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise ValueError("the answer is compressed, although the request did not allow this")
        yield response


@contextmanager
def _own(part: Path) -> Iterator[FileIO]:
    """Open and lock the partial download of a file."""
    while True:
        with writing(part.parent, _KEPT):
            ways = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            # Unbuffered, because a buffer would be written again after a full disk.
            file = FileIO(os.open(part, ways, 0o666), "r+b")
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if is_at(part, file.fileno()):  # else its previous owner has renamed or deleted it
                yield file
                return


def _fill(file: FileIO, url: str, size: int, title: str) -> None:
    """Append the missing bytes; reopen broken connections."""
    failures = 0
    at = file.seek(0, os.SEEK_END)
    if at > size:
        at = _restart(file)
    with _bar(title, size, at) as bar:
        while at < size:
            before = at
            try:
                with _answer(url, at) as response:
                    if at and response.status_code == 200:  # the whole file
                        at = _restart(file)
                    for chunk in response.iter_raw(_CHUNK):
                        at += len(chunk)
                        if at > size:
                            _restart(file)
                            raise DownloadError(
                                f"{title} must have {size:,} bytes according to the hub, but "
                                "has more; try again later."
                            )
                        _write(file, chunk, title)
                        bar.update(len(chunk))
            except Exception as error:
                failures = failures + 1 if at <= before else 0
                if failures == _ATTEMPTS or isinstance(error, _final()):
                    raise
                time.sleep(0.3 * failures)
            else:
                failures = failures + 1 if at <= before else 0
                if failures == _ATTEMPTS:
                    raise ValueError(f"only {at:,} of {size:,} bytes arrived")


def _write(file: FileIO, chunk: bytes, title: str) -> None:
    """Write a whole chunk."""
    rest = memoryview(chunk)
    with writing(Path(title), _KEPT):
        while rest:
            rest = rest[file.write(rest) :]


def _restart(file: FileIO) -> int:
    """Empty a file, and return its new length, 0."""
    file.seek(0)
    file.truncate()
    return 0


def _final() -> tuple[type[Exception], ...]:
    """List the exceptions that a repeated request would raise again."""
    return HeedfulError, import_module("huggingface_hub.errors").HfHubHTTPError


def _bar(title: str, size: int, at: int) -> Any:
    """Create a progress bar, which only a terminal shows."""
    bar = import_module("huggingface_hub.utils").tqdm
    is_shown = sys.stderr is not None and sys.stderr.isatty()
    return bar(total=size, initial=at, desc=title, unit="B", unit_scale=True, disable=not is_shown)
