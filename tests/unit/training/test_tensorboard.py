import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from heedful.errors import StorageError
from heedful.training.tensorboard import EventLog


def scalars(folder):
    """What TensorBoard shows: for each tag its steps, values and times."""
    found = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    found.Reload()
    return {
        tag: [(event.step, event.value, event.wall_time) for event in found.Scalars(tag)]
        for tag in found.Tags()["scalars"]
    }


def line(step, **values):
    return {"step": step, "loss": float(step), "seconds": 10.0 * step, **values}


def write_log(path, lines, ended=5000.0):
    path.write_text("".join(json.dumps(entry) + "\n" for entry in lines))
    os.utime(path, (ended, ended))
    return path


def test_lines_are_there_at_once_and_only_numbers_are_drawn(tmp_path):
    with EventLog(tmp_path / "run") as events:
        events.write(line(1, perplexity=math.inf, nll=3.0, padding=None, memory=1 << 40))
        events.write({"step": 2, "valid_loss": 1.5, "valid_perplexity": 4.5, "bleu": 33.25})
        events.write({"step": 3, "refused": {"loss": "nan"}})
        found = scalars(tmp_path / "run")
    assert {tag: [event[:2] for event in events] for tag, events in found.items()} == {
        "train/loss": [(1, 1.0)],
        "train/memory": [(1, float(1 << 40))],
        "validation/loss": [(2, 1.5)],
        "validation/perplexity": [(2, 4.5)],
        "validation/bleu": [(2, 33.25)],
    }


def test_sample_translations_are_a_text(tmp_path):
    sample = {"source": "the | dog", "reference": "le chien", "translation": "犬"}
    with EventLog(tmp_path / "run") as events:
        events.write({"step": 2, "valid_loss": 1.5, "cer": 40.0, "samples": [sample]})
        found = EventAccumulator(str(tmp_path / "run")).Reload()
        assert found.Tags()["scalars"] == ["validation/loss", "validation/cer"]
        (event,) = found.Tensors("validation/samples/text_summary")
    text = event.tensor_proto.string_val[0].decode()
    assert text.splitlines()[0] == "| **source** | **reference** | **translation** |"
    assert text.splitlines()[2] == r"| the \| dog | le chien | 犬 |"
    plugin = found.SummaryMetadata("validation/samples/text_summary").plugin_data.plugin_name
    assert plugin == "text"


def test_a_resumed_run_has_every_step_once(tmp_path):
    log, folder = tmp_path / "log.jsonl", tmp_path / "run"
    with EventLog.follow(folder, log, 0) as events:
        for step in range(1, 8):
            events.write(line(step))
            events.write({"step": step, "valid_loss": 1.0, "bleu": 1.0})
    with EventLog.follow(folder, log, 4) as events:  # the last checkpoint was at step 4
        for step in range(5, 10):
            events.write({**line(step), "loss": 100.0 + step})
    found = scalars(folder)
    assert [event[:2] for event in found["train/loss"]] == [
        *((step, step) for step in range(1, 5)),
        *((step, 100 + step) for step in range(5, 10)),
    ]
    assert [step for step, _, _ in found["validation/bleu"]] == [1, 2, 3, 4]


def test_a_run_that_meets_tensorboard_late_is_whole_there(tmp_path):
    log = write_log(tmp_path / "log.jsonl", [line(step) for step in range(1, 7)])
    with EventLog.follow(tmp_path / "run", log, 4) as events:
        events.write(line(5))
    steps = [step for step, _, _ in scalars(tmp_path / "run")["train/loss"]]
    assert steps == [1, 2, 3, 4, 5]


def test_a_log_is_replayed_with_its_times_and_again_without_doubles(tmp_path):
    entries = [line(1), line(2), {"step": 2, "valid_loss": 1.0}, line(3)]
    log = write_log(tmp_path / "log.jsonl", entries)
    for _ in range(2):
        with EventLog(tmp_path / "run") as events:
            events.replay(log)
    found = scalars(tmp_path / "run")
    assert found["train/loss"] == [(1, 1.0, 4980.0), (2, 2.0, 4990.0), (3, 3.0, 5000.0)]
    assert found["validation/loss"] == [(2, 1.0, 4990.0)]


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match=r"cannot be written to .*file.run"):
        EventLog(tmp_path / "file" / "run")


WITHOUT = """
import sys
sys.modules["tensorboard"] = None
from pathlib import Path
from heedful.errors import MissingExtra
from heedful.training.tensorboard import EventLog
try:
    EventLog(Path("run"))
except MissingExtra as error:
    print(error)
print("torch" in sys.modules)
from heedful.training.train import train
try:
    train("tiny", source="no.en", target="no.fr", out="run", tensorboard="events")
except MissingExtra as error:
    print(error)
"""


def test_without_tensorboard_the_message_names_what_to_install(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[3] / "src")},
    )
    assert done.returncode == 0, done.stderr
    first, loaded, second = done.stdout.splitlines()
    assert first == second
    assert "pip install 'heedful[track]'" in first
    assert loaded == "False"
    assert not list(tmp_path.iterdir())
