"""The line of a notebook that a training updates."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
from IPython.core import events

from heedful.training.live_line import LiveLine, in_notebook, live_line
from heedful.training.log import RunLog
from tests.unit.training.test_log import LINE


class Display:
    """What IPython's `display` and its handle are called with."""

    def __init__(self):
        self.shown = []

    def display(self, content, *, raw, display_id):
        assert raw
        assert display_id
        self.shown.append(content)
        return self

    def update(self, content, *, raw):
        assert raw
        assert self.shown
        self.shown.append(content)


@pytest.fixture
def notebook(monkeypatch):
    """An IPython whose shell has a kernel."""
    display = Display()
    module = ModuleType("IPython")
    shell = SimpleNamespace(kernel=object())
    shell.events = events.EventManager(shell, events.available_events)
    display.end_cell = lambda value: shell.events.trigger(
        "post_run_cell", SimpleNamespace(result=value)
    )
    module.get_ipython = lambda: shell
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return display


def test_a_line_is_displayed_once_and_then_replaced(notebook, tmp_path, capsys):
    with RunLog(tmp_path / "log.jsonl", 0, 10, line=live_line()) as log:
        log.say("1,000 pairs")
        log.training(LINE, 0.5, 61.0)
        log.validation({"step": 5, "valid_loss": 1.0, "valid_perplexity": 2.7, "bleu": 31.25})
        log.training(LINE | {"step": 6}, 0.6, 60.0)
        log.say("warning: <b>")
        log.result(SimpleNamespace(_repr_html_=lambda: "<svg/>"))
    texts = [content["text/plain"] for content in notebook.shown]
    assert texts[0] == "1,000 pairs"
    assert texts[1] == " 50%  step 5  loss 2.000  1,234 tokens/s  0:01:01 left"
    assert "step 6" in texts[2]
    assert "validation at step 5: perplexity 2.70, BLEU 31.2" in texts[2]
    assert notebook.shown[3]["text/html"] == "<svg/>"
    assert len(texts) == 4
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err == "warning: <b>\n"


@pytest.mark.parametrize("is_value", [True, False])
def test_a_result_that_the_cell_shows_is_not_shown_twice(notebook, is_value):
    result = SimpleNamespace(_repr_html_=lambda: "<svg/>")
    line = LiveLine()
    line.show_object(result)
    notebook.end_cell(result if is_value else None)
    notebook.end_cell(result)  # a later cell that shows it again changes nothing
    htmls = [content["text/html"] for content in notebook.shown]
    assert htmls == ["<svg/>", ""] if is_value else htmls == ["<svg/>"]


def test_a_message_cannot_write_markup(notebook):
    LiveLine().show("<script>")
    assert "<script>" not in notebook.shown[0]["text/html"]


def test_a_terminal_has_no_line(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert live_line() is None
    terminal = ModuleType("IPython")
    terminal.get_ipython = SimpleNamespace
    monkeypatch.setitem(sys.modules, "IPython", terminal)
    assert not in_notebook()
    terminal.get_ipython = lambda: None
    assert not in_notebook()
