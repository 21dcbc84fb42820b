"""
Download of one file, resumed where an earlier attempt stopped.

::

    FILE.partial        the part of the file that has arrived
    FILE.partial.json   its address, and the version of the file

The rest of a file is requested with `Range` and `If-Range`, so a server sends the whole file if it
has changed. Only http and https are supported, including in redirects. Proxies are read from the
environment: `https_proxy`, `http_proxy`, `no_proxy`.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

from heedful.data.datasets.checksums import writing
from heedful.errors import DownloadError
from heedful.files import read_within, sync, write_whole

SCHEMES = ("http", "https")
Watch = Callable[[str, int, int | None], None]

_TIMEOUT = 30.0  # seconds without a byte
_PAUSES = (1.0, 2.0, 4.0)  # seconds before each further try
_CHUNK = 1 << 16
_MUCH = 1 << 20  # progress beyond 1 MiB resets the retry count
_PASSING = (408, 425, 429, 500, 502, 503, 504)
# Maximum bytes of a file whose size is not in the registry. The largest files of OPUS stay below
# the first limit. The second applies if the server does not state a size either.
_MOST_STATED = 64 << 30
_MOST_UNSTATED = 4 << 30
_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)")


class Unreachable(DownloadError):
    """A host that does not answer at all, so requesting another file from it is useless."""


class _Cut(Exception):
    """A temporary error, such as a lost connection or a busy server; the request is repeated."""


def fetch(
    address: str,
    partial: Path,
    *,
    size: int | None = None,
    watch: Watch = lambda _name, _done, _total: None,
    wait: Callable[[float], object] = time.sleep,
) -> None:
    """
    Download a file, resuming an earlier attempt.

    `size`: size of the file in bytes, if known. `watch`: called after each chunk with the name, the
    bytes so far and the total bytes, if known. `wait`: called with the seconds to wait before a
    retry.

    A lost connection is retried after 1, 2 and 4 seconds; progress beyond 1 MiB resets the retry
    count. The caller checks the content. A file may have at most `size` bytes; if `size` is
    unknown, at most 64 GiB, or 4 GiB if the server does not state a size either. Nothing of a
    larger file is kept.

    Raises `DownloadError` if the file cannot be downloaded from the address; the message gives the
    reason in a few words. Raises `StorageError` if the disk is full.
    """
    cuts = 0
    while True:
        before = _length(partial)
        try:
            _fetch_once(address, partial, size, watch)
            return
        except _Cut as cut:
            cuts = 1 if _length(partial) - before >= _MUCH else cuts + 1
            if cuts > len(_PAUSES):
                raise DownloadError(f"{cut}, {cuts} times") from cut
            wait(_PAUSES[cuts - 1])


def forget(partial: Path) -> None:
    """Delete a partial download, so that the next attempt starts from scratch."""
    with writing(partial.parent):
        partial.unlink(missing_ok=True)
        _origin(partial).unlink(missing_ok=True)


def _fetch_once(address: str, partial: Path, size: int | None, watch: Watch) -> None:
    """Send one request and save the content of the response."""
    headers = {"User-Agent": "heedful", "Accept-Encoding": "identity"}
    had = _length(partial)
    if had and (validator := _validator_of(partial, address)):
        headers |= {"Range": f"bytes={had}-", "If-Range": validator}
    try:
        response = _open(address, headers)
    except HTTPError as error:
        _check_error(error, partial, had, size)
        return
    with response:
        done, total = _extent(response, partial, had)
        _check_size(total, size)
        total = total or size
        most = _MOST_UNSTATED if total is None else total
        with writing(partial.parent):
            if not done:
                _begin(partial, address, response)
            with partial.open("ab") as file:
                for chunk in _chunks(response):
                    file.write(chunk)
                    done += len(chunk)
                    watch(partial.stem, done, total)
                    if done > most:
                        break
    if total is not None and done < total:
        raise _Cut(f"the connection was lost after {done:,} of {total:,} bytes")
    if done > most:
        forget(partial)
        if total is None:
            raise DownloadError(
                f"the server sent more than {most:,} bytes, the limit for a file of unknown size"
            )
        raise DownloadError(f"the server sent more than the {total:,} bytes of the file")


def _check_size(stated: int | None, size: int | None) -> None:
    """Refuse a file if its stated size is implausible or differs from the known size."""
    if stated is None:
        return
    if size not in (None, stated):
        raise DownloadError(f"the server's file has {stated:,} bytes instead of {size:,}")
    if size is None and stated > _MOST_STATED:
        raise DownloadError(
            f"the server states a size of {stated:,} bytes, but the limit is {_MOST_STATED:,}"
        )


def _open(address: str, headers: dict[str, str]) -> HTTPResponse:
    """Send a request and read the response headers."""
    try:
        request = Request(address, headers=headers)
        response: HTTPResponse = _web().open(request, timeout=_TIMEOUT)
    except HTTPError:
        raise
    except URLError as error:
        if isinstance(error.reason, ConnectionResetError | BrokenPipeError):
            raise _Cut("the connection was lost") from error
        why = getattr(error.reason, "strerror", None) or error.reason
        raise Unreachable(f"no answer: {why}") from error
    except OSError as error:
        raise _Cut("the connection was lost before an answer arrived") from error
    except (HTTPException, ValueError) as error:
        raise DownloadError(f"it cannot be requested: {error}") from error
    if response.status not in (200, 206) or response.headers.get_content_type() == "text/html":
        with response:
            kind = response.headers.get_content_type()
            raise DownloadError(f"the answer is not a file: HTTP {response.status}, {kind}")
    return response


def _check_error(error: HTTPError, partial: Path, had: int, size: int | None) -> None:
    """Turn an error response into an exception, or detect that the file is complete."""
    with error:
        if error.code == 416:
            match = _RANGE.fullmatch(error.headers.get("Content-Range", ""))
            if had == size or (match and match[2] == str(had)):
                return  # an earlier run was killed before it renamed the complete file
            forget(partial)
            raise _Cut(
                "the server's file is shorter than the part that was downloaded before"
            ) from error
        answer = f"HTTP {error.code} {error.reason}"
        raise (_Cut if error.code in _PASSING else DownloadError)(answer) from error


def _extent(response: HTTPResponse, partial: Path, had: int) -> tuple[int, int | None]:
    """Return the offset of the content and the length of the file."""
    length = response.headers.get("Content-Length", "")
    total = int(length) if length.isdecimal() else None
    if response.status != 206:
        return 0, total
    match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if not match or match[1] != str(had):
        forget(partial)
        raise _Cut("the server sent a different part of the file than was requested")
    return had, None if match[2] == "*" else int(match[2])


def _chunks(response: HTTPResponse) -> Iterator[bytes]:
    """Read content in chunks; report network errors as such, not as disk errors."""
    while True:
        try:
            chunk = response.read(_CHUNK)
        except (OSError, HTTPException) as error:
            raise _Cut(f"the connection was lost ({error or type(error).__name__})") from error
        if not chunk:
            return
        yield chunk


def _begin(partial: Path, address: str, response: HTTPResponse) -> None:
    """Empty the file, then record the address and the version of the download."""
    partial.write_bytes(b"")
    tag = response.headers.get("ETag", "")
    strong = tag if tag.startswith('"') else ""  # If-Range allows no weak tag (RFC 9110, 13.1.5)
    validator = strong or response.headers.get("Last-Modified", "")
    record = json.dumps({"address": address, "validator": validator})
    write_whole(_origin(partial), record.encode(), alone=True)
    sync(partial.parent)


def _validator_of(partial: Path, address: str) -> str:
    """Return the validator of a partial download, if it came from this address."""
    try:
        origin = json.loads(read_within(_origin(partial)))
        validator = origin["validator"] if origin["address"] == address else ""
        return validator if isinstance(validator, str) else ""
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


def _origin(partial: Path) -> Path:
    """Return the path of the file that records a partial download's origin."""
    return partial.with_name(f"{partial.name}.json")


def _length(partial: Path) -> int:
    """Return the size of a file; 0 if it is missing."""
    return partial.stat().st_size if partial.is_file() else 0


class _WebOnly(HTTPRedirectHandler):
    """A handler of redirects that follows only web addresses, and never from https to http."""

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        """Refuse a redirect to any address that is not allowed."""
        scheme = urlsplit(newurl).scheme
        if scheme not in SCHEMES or (req.type == "https" and scheme == "http"):
            raise DownloadError(f"it redirects to {newurl}, which is not allowed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _web() -> OpenerDirector:
    """Create an opener that opens only web addresses, even after a redirect."""
    opener = OpenerDirector()
    opener.addheaders = []
    for handler in (
        ProxyHandler(),
        UnknownHandler(),
        HTTPHandler(),
        HTTPSHandler(),
        HTTPDefaultErrorHandler(),
        HTTPErrorProcessor(),
        _WebOnly(),
    ):
        opener.add_handler(handler)
    return opener
