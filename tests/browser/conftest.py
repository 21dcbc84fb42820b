"""Pages in a real browser, with checks for console errors and network requests."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from heedful.visualise.explorer import write_explorer
from heedful.visualise.record import ExplorerRecord

# Milliseconds: long enough for a slow machine; what is waited for comes much sooner.
PATIENCE = 240_000


@dataclass
class Heard:
    """Console messages of a page, and its requests for other files."""

    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Open a record's stand-alone page; at the end nothing may have gone wrong on any of them."""
    heard, contexts = Heard(), []

    def open_page(record: ExplorerRecord, **settings: Any) -> Any:
        path = tmp_path / "explorer.html"
        write_explorer(record, path)
        context = browser.new_context(**({"viewport": {"width": 1200, "height": 900}} | settings))
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: heard.complaints.append(message.text))
        page.on("pageerror", lambda error: heard.complaints.append(str(error)))
        page.on("request", lambda request: heard.requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert heard.complaints == []
    assert [url for url in heard.requests if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in heard.requests if url.startswith("file:")]) == len(contexts)
