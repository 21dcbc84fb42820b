"""A small web server with the faults of real ones, in another thread."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Page:
    """A file on the server, and how well the server behaves."""

    content: bytes = b""
    headers: dict[str, str] = field(default_factory=lambda: {"ETag": '"one"'})
    ranges: bool = True
    length: bool = True
    endless: bool = False  # the content is sent again and again
    cuts: list[int] = field(default_factory=list)  # bytes sent before the connection is cut
    statuses: list[int] = field(default_factory=list)  # answers before the first good one
    location: str = ""
    claim: str = ""  # a Content-Range that is not true
    held_at: int | None = None  # bytes after which the rest waits for `go_on`
    go_on: threading.Event = field(default_factory=threading.Event)


@dataclass
class Site:
    """The server's files, and the requests it received."""

    address: str = ""
    pages: dict[str, Page] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def ranges(self) -> list[tuple[str | None, str | None]]:
        """Return the requested ranges, with their conditions."""
        return [(head.get("range"), head.get("if-range")) for _, head in self.asked]


@contextmanager
def serving(**pages: Page) -> Iterator[Site]:
    """Serve pages, by name, until the block ends."""
    site = Site(pages={f"/{name.replace('__', '.')}": page for name, page in pages.items()})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heads = {name.lower(): value for name, value in self.headers.items()}
            site.asked.append((self.path, heads))
            _answer(self, site.pages.get(self.path), heads)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False  # what is still being said ends with the block
    site.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()


def _answer(handler: BaseHTTPRequestHandler, page: Page | None, heads: dict[str, str]) -> None:
    handler.close_connection = True
    if page is None:
        handler.send_error(404)
        return
    if page.statuses:
        handler.send_error(page.statuses.pop(0))
        return
    if page.location:
        handler.send_response(302)
        handler.send_header("Location", page.location)
        handler.end_headers()
        return
    start = _start(page, heads)
    if start >= len(page.content) > 0:
        handler.send_response(416)
        handler.send_header("Content-Range", f"bytes */{len(page.content)}")
        handler.end_headers()
        return
    handler.send_response(206 if start or page.claim else 200)
    if start or page.claim:
        truth = f"bytes {start}-{len(page.content) - 1}/{len(page.content)}"
        handler.send_header("Content-Range", page.claim or truth)
        page.claim = ""
    for name, value in page.headers.items():
        handler.send_header(name, value)
    if page.length:
        handler.send_header("Content-Length", str(len(page.content) - start))
    handler.end_headers()
    end = start + page.cuts.pop(0) if page.cuts else len(page.content)
    try:
        for position in range(start, end, 1024):
            if page.held_at is not None and position >= page.held_at:
                page.go_on.wait()
            handler.wfile.write(page.content[position : min(position + 1024, end)])
        while page.endless:
            handler.wfile.write(page.content)
    except OSError:
        return  # the other side has hung up


def _start(page: Page, heads: dict[str, str]) -> int:
    """Tell where a server that knows its standard (RFC 9110, 13.1.5) begins."""
    wanted = re.fullmatch(r"bytes=(\d+)-", heads.get("range", ""))
    condition = heads.get("if-range")
    current = (page.headers.get("ETag"), page.headers.get("Last-Modified"))
    if not wanted or not page.ranges or (condition and condition not in current):
        return 0
    return int(wanted[1])
