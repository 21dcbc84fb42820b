"""
A progress line in a notebook, which training updates in place.

IPython is not required. Outside a notebook there is no such line; a terminal shows a progress bar
(`heedful.training.log`).
"""

import sys
from html import escape
from importlib import import_module
from typing import Any

from heedful.errors import escape_controls


class LiveLine:
    """A line of text in the output of the running cell."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str) -> None:
        """Replace the text of the line."""
        style = "margin: 0; white-space: pre-wrap"
        self._update(text, f'<pre style="{style}">{escape(text)}</pre>')

    def say(self, text: str) -> None:
        """Replace the line with a message, but print a warning to stderr, where it remains."""
        if text.startswith("warning"):
            print(escape_controls(text), file=sys.stderr, flush=True)
        else:
            self.show(text)

    def show_object(self, shown: Any) -> None:
        """Replace the line with an object's HTML, unless the cell itself shows the object."""
        self._update(repr(shown), shown._repr_html_())
        events = _shell().events

        def after_cell(cell: Any) -> None:
            events.unregister("post_run_cell", after_cell)
            # a notebook shows the value of a cell's last line, so the object would appear twice
            if cell.result is shown:
                self._update("", "")

        events.register("post_run_cell", after_cell)

    def _update(self, text: str, html: str) -> None:
        """Display the line at the first call, and update it afterwards."""
        content = {"text/plain": text, "text/html": html}
        if self._handle is None:
            notebook: Any = import_module("IPython.display")
            self._handle = notebook.display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


def live_line() -> LiveLine | None:
    """Create a progress line for the running cell; None outside a notebook."""
    return LiveLine() if in_notebook() else None


def in_notebook() -> bool:
    """Return whether this process is an IPython kernel; IPython in a terminal is not."""
    return getattr(_shell(), "kernel", None) is not None


def _shell() -> Any:
    """Return IPython's shell; None if this process has none."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
