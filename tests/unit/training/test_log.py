import json
import math
import os
import pty
import select
import subprocess
import sys
import termios
from contextlib import suppress

import pytest

from heedful.errors import RunFolderError
from heedful.training.log import RunLog, duration, perplexity
from heedful.training.state import Clock, Counters, TrainState

LINE = {
    "step": 5,
    "loss": 2.0,
    "perplexity": 7.4,
    "learning_rate": 1e-3,
    "target_tokens_per_second": 1234.5,
}


def lines(path):
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def test_lines_are_on_disk_at_once_and_shown_in_plain_text(tmp_path, capsys):
    path = tmp_path / "log.jsonl"
    with RunLog(path, 0, 10) as log:
        log.training(LINE, 0.5, 3661.0)
        assert lines(path) == [LINE]
        log.validation({"step": 5, "valid_loss": 1.0, "valid_perplexity": 2.7, "bleu": 31.25})
        sample = {"source": "dog\u2028", "translation": "犬"}
        losses = {"valid_loss": 1.0, "valid_perplexity": 2.7}
        log.validation({"step": 6, **losses, "cer": 41.0, "samples": [sample]})
    assert "犬" in path.read_text()
    assert lines(path)[2]["samples"] == [sample]
    with RunLog(path, 6, 10, quiet=True):
        assert len(lines(path)) == 3
    shown = capsys.readouterr().err.splitlines()
    assert shown[0].startswith("step 5  loss 2.000  perplexity 7.40")
    assert shown[0].endswith("1:01:01 left")
    assert shown[1] == "validation at step 5: perplexity 2.70, BLEU 31.2"
    assert shown[2] == "validation at step 6: perplexity 2.70, CER 41.0"
    assert shown[3].split() == ["source", "dog\\u2028"]
    assert shown[-1].split()[:1] == ["translation"]


def test_names_of_emoji_are_shown_as_they_are_written(tmp_path, capsys):
    with RunLog(tmp_path / "log.jsonl", 0, 10) as log:
        log.say("10:100:30 :smile:")
    assert capsys.readouterr().err == "10:100:30 :smile:\n"


def test_resuming_drops_lines_after_the_checkpoint_and_half_lines(tmp_path):
    path = tmp_path / "log.jsonl"
    strange = '5\nnull\n{"step": "2"}\n[]\n{"loss": 1.0}\n'
    path.write_text(f'{{"step": 1}}\n{strange}{{"step": 2}}\n{{"step": 3}}\n{{"step": 2, "va')
    with RunLog(path, 2, 10, quiet=True) as log:
        log.training({**LINE, "step": 3}, 0.1, 1.0)
    assert [line["step"] for line in lines(path)] == [1, 2, 3]


def test_a_log_that_cannot_be_read_is_reported(tmp_path):
    (tmp_path / "log.jsonl").mkdir()
    with pytest.raises(RunFolderError, match=r"log\.jsonl must be the log .* Is a directory"):
        RunLog(tmp_path / "log.jsonl", 0, 10)


def test_a_log_that_was_removed_begins_again(tmp_path, capsys):
    path = tmp_path / "run" / "log.jsonl"
    path.parent.mkdir()
    with RunLog(path, 0, 10) as log:
        log.training(LINE, 0.5, 1.0)
        path.unlink()
        path.parent.rmdir()
        log.training({**LINE, "step": 6}, 0.6, 1.0)
    assert [line["step"] for line in lines(path)] == [6]
    assert "warning: log.jsonl was removed during training" in capsys.readouterr().err


def test_a_terminal_that_was_closed_ends_nothing(tmp_path, monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    closed = os.fdopen(writing, "w", buffering=1)
    monkeypatch.setattr(sys, "stderr", closed)
    with RunLog(tmp_path / "log.jsonl", 0, 10) as log:
        log.training(LINE, 0.5, 1.0)
        log.say("still there")
    monkeypatch.undo()
    with suppress(BrokenPipeError):
        closed.close()
    assert lines(tmp_path / "log.jsonl") == [LINE]


def test_a_terminal_gets_a_bar_that_fits_into_eighty_columns(tmp_path):
    program = (
        "from pathlib import Path\n"
        "from heedful.training.log import RunLog\n"
        f"with RunLog(Path({str(tmp_path / 'log.jsonl')!r}), 0, 10) as log:\n"
        f"    log.training({LINE!r}, 0.5, 3661.0)\n"
    )
    parent, child = pty.openpty()
    termios.tcsetwinsize(child, (24, 80))
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.Popen(
        [sys.executable, "-c", program], stderr=child, env=environment, stdin=child
    )
    os.close(child)
    shown = b""
    while process.poll() is None or select.select([parent], [], [], 0.1)[0]:
        try:
            shown += os.read(parent, 4096)
        except OSError:  # the other end is closed
            break
    os.close(parent)
    assert process.wait() == 0
    for part in ("50%", "step 5", "loss 2.00", "rate 1.0e-03", "1,234 tokens/s", "1:01:01"):
        assert part in shown.decode()


def test_a_time_is_written_in_hours_minutes_and_seconds():
    assert duration(27 * 3600 + 5 * 60 + 8.7) == "27:05:09"
    assert duration(math.inf) == "0:00:00"


def test_other_ranks_are_silent(capsys):
    with RunLog(None, 0, 10) as log:
        log.training(LINE, 0.5, 1.0)
        log.say("hello")
    assert capsys.readouterr().err == ""


def test_counters_survive_json():
    counters = Counters(step=3, epoch=1, position=2, source_tokens=9, seconds=1.5)
    assert Counters(**json.loads(json.dumps(counters.to_dict()))) == counters


def test_the_clock_adds_earlier_sittings():
    assert Clock(earlier=100.0).seconds >= 100.0


def test_perplexity_is_the_exponential():
    assert perplexity(math.log(5)) == 5.0 or abs(perplexity(math.log(5)) - 5.0) < 1e-12
    assert perplexity(1e6) == math.inf


def test_only_the_state_of_a_training_is_read_as_one():
    best = [{"step": 4, "valid_loss": 1.5, "bleu": 20}]
    state = {"step": 5, "counters": Counters(step=5).to_dict(), "best": best, "without_better": 1}
    assert TrainState.from_dict(state) == TrainState(
        Counters(step=5), best, 1, best_regular=best[0]
    )
    for changed in (
        {"counters": None},
        {"counters": {"step": 4}},
        {"counters": {"step": 5, "epoch": -1}},
        {"counters": {"step": 5, "position": "3"}},
        {"step": 2**63, "counters": {"step": 2**63}},
        {"best": {}},
        {"best": [{"step": 4}]},
        {"best": [{"step": 4, "valid_loss": "1"}]},
        {"without_better": None},
        {"since_log": [0.0]},
        {"since_log": 6 * [None]},
    ):
        with pytest.raises(ValueError, match="since_log are invalid"):
            TrainState.from_dict({**state, **changed})
