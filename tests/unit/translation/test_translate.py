"""Reading lines ahead and writing translations, without a model."""

import json
import threading

import pytest

from heedful.errors import TextError
from heedful.translation.result import Translation
from heedful.translation.translate import OutputFormat, windows


def test_lines_come_in_order_in_full_windows():
    found = list(windows((str(i) for i in range(25)), size=10))
    assert [line for window in found for line in window] == [str(i) for i in range(25)]
    assert max(map(len, found)) <= 10


def test_a_pause_hands_out_what_is_there():
    go_on = threading.Event()

    def lines():
        yield "first"
        assert go_on.wait(60)  # what is there comes before
        yield "second"

    reader = windows(lines(), size=100)
    assert next(reader) == ["first"]
    go_on.set()
    assert next(reader) == ["second"]
    assert list(reader) == []


def test_an_error_comes_after_the_lines_before_it():
    def lines():
        yield "good"
        raise TextError("line 2 is broken")

    reader = windows(lines())
    assert next(reader) == ["good"]
    with pytest.raises(TextError, match="line 2"):
        next(reader)


def test_reading_ahead_is_bounded():
    taken = 0

    def lines():
        nonlocal taken
        while True:
            taken += 1
            yield "x"

    reader = windows(lines(), size=10)
    for done in range(1, 100):
        assert len(next(reader)) <= 10
        # what was handed out, the queue, the line that waits to enter it and the one just made
        assert taken <= 10 * done + 2 * 10 + 2
    reader.close()


BEST = Translation("une\tligne", -0.5, ("▁une", "▁ligne"), -1.0)
NEXT = Translation("autre", -0.7, ("▁autre",), -1.2)
BOTH = Translation(BEST.text, BEST.score, BEST.tokens, BEST.log_probability, (NEXT,))


def test_layouts():
    assert list(OutputFormat().lines(7, BEST)) == ["une\tligne"]
    assert list(OutputFormat(scores=True).lines(7, BEST)) == ["-0.500000\tune ligne"]
    assert list(OutputFormat(n_best=2).lines(7, BOTH)) == [
        "7 ||| une\tligne ||| -0.500000",
        "7 ||| autre ||| -0.700000",
    ]
    (line,) = OutputFormat("jsonl", n_best=2).lines(7, BOTH)
    entry = json.loads(line)
    assert entry["line"] == 7
    assert entry["text"] == "une\tligne"
    assert entry["alternatives"][0]["score"] == -0.7


def test_outer_white_space_stays_out_of_lines_with_several_fields():
    other = Translation(" le chat ", -2.0, ("le", "chat"), -2.0)
    found = Translation("\tle chien ", -1.0, ("le", "chien"), -1.0, alternatives=(other,))
    assert list(OutputFormat().lines(0, found)) == ["\tle chien "]
    assert list(OutputFormat(scores=True).lines(0, found)) == ["-1.000000\tle chien"]
    assert list(OutputFormat(n_best=2).lines(0, found)) == [
        "0 ||| le chien ||| -1.000000",
        "0 ||| le chat ||| -2.000000",
    ]
    assert json.loads(*OutputFormat("jsonl").lines(0, found))["text"] == "\tle chien "
