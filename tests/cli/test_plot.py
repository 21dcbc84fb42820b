"""Learning curves, TensorBoard and costs of real runs."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from heedful.analysis.info import describe_run
from heedful.analysis.plot import read_runs, run_names
from heedful.data.batching import PADDING_COST_CPU, BatchOrder
from heedful.data.encoded.dataset import EncodedPairs
from heedful.errors import RunFolderError
from heedful.kernels.attention import SHORT
from heedful.model.contracts import training_flops
from heedful.model.flops import RowLengths
from heedful.runs.run import Run, read_machine_settings
from heedful.training.history import read_history
from tests.support.commands import train_arguments


def test_runs_are_drawn_and_summed_up(heedful_cli, trained, tmp_path):
    other = tmp_path / "other" / "run"
    other.mkdir(parents=True)
    shutil.copy(trained / "config.json", other)
    log = (trained / "log.jsonl").read_text().splitlines()
    (other / "log.jsonl").write_text(log[-2] + "\nnoise\n" + '{"step": 99, "refused": {}}\n{"st')
    out = tmp_path / "curves.svg"
    for along, label in (("tokens", "target tokens"), ("hours", "minutes")):
        done = heedful_cli("plot", trained, other, "--out", out, "--x", along, "--smooth", 3)
        assert done.returncode == 0, done.stderr
        drawn = out.read_text()
        assert drawn.count(f">{label}<") == 6
        assert "other/run" in drawn
    assert "the log of other/run has 1 unreadable line, which the curves leave out" in done.stderr
    heading, first, second = done.stdout.splitlines()
    last = json.loads(log[-1])
    assert heading.startswith("run        steps")
    assert first.split()[1] == "24"
    assert f"{last['valid_perplexity']:,.0f} at 24" in first
    assert f"{json.loads(log[-2])['target_tokens']:,}" in first
    assert "(refused step 99)" in second
    assert " - " in second


def test_a_run_that_cannot_be_drawn_is_refused(heedful_cli, trained, tmp_path):
    done = heedful_cli("plot", trained, "--out", tmp_path / "curves.gif")
    assert done.returncode == 2
    assert ".png, .svg, .pdf" in done.stderr
    with pytest.raises(RunFolderError, match="does not exist"):
        read_runs([trained, tmp_path / "nowhere"])
    empty = tmp_path / "empty"
    empty.mkdir()
    shutil.copy(trained / "config.json", empty)
    with pytest.raises(RunFolderError, match=r"log\.jsonl cannot be read"):
        read_runs([empty])
    (empty / "log.jsonl").write_text('{"step": 1, "lo')
    with pytest.raises(RunFolderError, match="needs at least one logged step"):
        read_runs([empty])


def test_runs_are_named_by_what_tells_them_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = [tmp_path / "a" / "run", tmp_path / "b" / "run", tmp_path / "a" / "x" / ".." / "run"]
    assert run_names(paths) == ["a/run", "b/run", "a/run (2)"]
    assert run_names([tmp_path.relative_to(tmp_path)]) == [tmp_path.name]
    # no name is an absolute path, which would leave the folder that it is joined to
    assert run_names([Path("/runs/a"), Path("/data/runs/a")]) == ["runs/a", "data/runs/a"]


def scalars(folder):
    found = EventAccumulator(str(folder))
    found.Reload()
    return {
        tag: {event.step: event.value for event in found.Scalars(tag)}
        for tag in found.Tags()["scalars"]
    }


def logged(run, name):
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return {entry["step"]: pytest.approx(entry[name]) for entry in entries if name in entry}


def test_tensorboard_shows_a_resumed_run_and_old_ones(heedful_cli, trained, text, tmp_path):
    run, board = tmp_path / "resumed", tmp_path / "board"
    shutil.copytree(trained, run)
    command = train_arguments(text, run, "train.precision=fp32", "train.steps=30")
    done = heedful_cli(*command, "--resume", "--tensorboard", board)
    assert done.returncode == 0, done.stderr
    done = heedful_cli("plot", trained, "--tensorboard", board)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in board.iterdir()} == {"resumed", "run"}
    # on a slow machine the log has more lines than that of the last step of each sitting
    for folder, steps in ((run, {24, 30}), (trained, {24})):
        found = scalars(board / folder.name)
        assert steps <= set(found["train/loss"])
        assert found["train/loss"] == logged(folder, "loss")
        assert found["train/learning_rate"] == logged(folder, "learning_rate")
        assert found["validation/bleu"] == logged(folder, "bleu")


def flops_of_the_batches(path):
    """Count a run again, batch by batch, in the order in which it saw them."""
    run = Run.open(path)
    pairs = EncodedPairs.open(run.folder.data, run.tokenizer)
    source, target = pairs.source_lengths + 1, pairs.target_lengths + 1
    settings, choices = run.config.train, read_machine_settings(run.folder)
    order = BatchOrder(
        *(source, target, settings.batch_tokens, choices.micro_batch_tokens, "real", settings.seed),
        padding_cost=PADDING_COST_CPU,
        left_out=SHORT,
    )
    with torch.device("meta"):  # where padding is not left out, but there is none
        model = run.build()
    steps = [batch for epoch in range(9) for batch in order.epoch(epoch)]
    return sum(
        training_flops(model, RowLengths.unpadded(source[rows]), RowLengths.unpadded(target[rows]))
        for batch in steps[: settings.steps]
        for rows in order.cut(batch, 1)[0]
    )


def test_info_tells_what_a_run_has_cost(heedful_cli, trained, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    seconds = read_history(trained / "log.jsonl").last("seconds")
    cost = describe_run(trained)["cost"]
    assert cost["counted_flops"] == pytest.approx(flops_of_the_batches(trained), rel=0.005)
    assert cost["hours"] == pytest.approx(seconds / 3600, rel=0.01)
    assert set(cost) == {"counted_flops", "hours"}  # nobody has measured this machine

    machine = json.loads((trained / "config.json").read_text())["machine"]
    key = f"{machine['processor']} | 1 threads | {machine['torch']}"
    (tmp_path / "heedful").mkdir(exist_ok=True)
    rates = json.dumps({key: {"fp32": 50.0, "bf16": 70.0}})
    (tmp_path / "heedful" / "products.json").write_text(rates)
    cost = describe_run(trained)["cost"]
    assert cost["sustained_tflops"] == 0.05
    assert cost["paper_flops"] == pytest.approx(seconds * 50e9, rel=0.01)
    share = cost["counted_flops"] / cost["paper_flops"]
    assert cost["share_of_rate"] == pytest.approx(share, rel=0.01)
    shown = heedful_cli("info", trained).stdout.splitlines()
    assert f"  counted_flops: {cost['counted_flops']:g}" in shown


def test_without_a_log_no_cost_is_told(trained, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(trained, bare, ignore=shutil.ignore_patterns("data"))
    assert describe_run(bare)["cost"] == describe_run(trained)["cost"]
    (bare / "log.jsonl").unlink()
    assert "cost" not in describe_run(bare)
