"""Callbacks of real trainings: what they are told, how they stop a run, how they fail."""

import json

import jaxtyping
import pytest
import torch

import heedful
from heedful.errors import ArgumentError, StorageError, TrainingFailed
from heedful.training.callbacks import Callback
from heedful.training.result import TrainingResult
from tests.support.commands import write_text

SETTINGS = {
    "model.d_model": 16,
    "model.heads": 2,
    "data.vocabulary_size": 60,
    "search.max_length": "input+5",  # searches of a model that has learned little seldom end
    "train.steps": 6,
    "train.batch_tokens": 60,
    "train.validate_steps": 2,
    "train.checkpoint_steps": 3,
    "train.keep_best": 0,
    "train.precision": "fp32",
    "train.device": "cpu",
}


class Recorder(Callback):
    """Records each call, and acts where it is told to."""

    def __init__(self, act=None, at=None):
        self.calls, self.act, self.at = [], act, at

    def record(self, name, value):
        self.calls.append((name, value))
        if self.act is not None and self.at == (name, len(self.named(name))):
            self.act(self)

    def named(self, name):
        return [value for called, value in self.calls if called == name]

    def on_step(self, figures):
        self.record("step", figures)

    def on_log(self, line):
        self.record("log", line)

    def on_validation(self, line):
        self.record("validation", line)

    def on_checkpoint(self, folder):
        assert (folder / "model.safetensors").exists()
        self.record("checkpoint", folder.name)

    def on_end(self, result):
        self.record("end", result)


@pytest.fixture(scope="module")
def text(grammar, tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    pairs = sorted(grammar[0], key=lambda pair: len(pair[1]))
    write_text(folder, pairs[:100], "train")
    write_text(folder, pairs[100:104], "valid")
    return folder


def run_training(text, out, callbacks, **options):
    sides = {
        f"{part}{side}": text / f"{name}.{language}"
        for part, name in (("", "train"), ("valid_", "valid"))
        for side, language in (("source", "en"), ("target", "fr"))
    }
    return heedful.train(
        "tiny", **sides, out=out, settings=SETTINGS, quiet=True, callbacks=callbacks, **options
    )


@pytest.fixture
def train(text, tmp_path):
    def run(*callbacks, **options):
        return run_training(text, tmp_path / "run", callbacks, **options)

    return run


WEIGHTS = "checkpoints/step-00000006/model.safetensors"


@pytest.fixture(scope="module")
def weights_without_callbacks(text, tmp_path_factory):
    return (run_training(text, tmp_path_factory.mktemp("plain"), ()).run / WEIGHTS).read_bytes()


def test_a_callback_is_told_of_everything_that_the_log_has(train, tmp_path):
    class LogReader(Callback):
        def on_log(self, line):
            written = (tmp_path / "run" / "log.jsonl").read_text("utf-8").splitlines()
            assert json.loads(written[-1]) == line  # is written before a callback gets it

        on_validation = on_log

    recorder = Recorder()
    result = train(LogReader(), recorder)
    assert isinstance(result, TrainingResult)
    assert [figures["step"] for figures in recorder.named("step")] == [1, 2, 3, 4, 5, 6]
    assert all(figures["gradient_norm"] > 0 for figures in recorder.named("step"))
    assert recorder.named("checkpoint") == ["step-00000003", "step-00000006"]
    assert recorder.named("end") == [result]
    lines = [json.loads(line) for line in result.log.read_text("utf-8").splitlines()]
    told = [value for name, value in recorder.calls if name in ("log", "validation")]
    assert told == lines
    assert [line["step"] for line in recorder.named("validation")] == [2, 4, 6]
    # the last training line is due at the end, and covers all steps
    losses = [figures["loss"] for figures in recorder.named("step")]
    assert min(losses) < recorder.named("log")[-1]["loss"] < max(losses)


def test_a_callback_stops_a_run_that_then_goes_on_as_if_it_had_not(
    train, tmp_path, weights_without_callbacks
):
    recorder = Recorder(lambda callback: callback.stop("pruned"), ("validation", 2))
    result = train(recorder)
    assert (result.reason, result.step) == ("pruned", 4)
    assert recorder.named("checkpoint") == ["step-00000003", "step-00000004"]
    assert train(recorder, resume=True).reason == "steps"
    assert (tmp_path / "run" / WEIGHTS).read_bytes() == weights_without_callbacks


@pytest.mark.parametrize("at", [("step", 2), ("log", 1), ("validation", 1), ("checkpoint", 1)])
def test_a_callback_that_fails_ends_the_run_with_its_checkpoint(train, tmp_path, at):
    def fail(callback):
        raise ZeroDivisionError("no such metric")

    failing, after = Recorder(fail, at), Recorder()
    with pytest.raises(
        TrainingFailed, match=rf"Recorder\.on_{at[0]} failed with ZeroDivisionError"
    ):
        train(failing, after)
    steps = len(failing.named("step"))
    last = max(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert last == f"step-{steps:08}"
    assert failing.named("end") == after.named("end") == []
    assert train(resume=True).step == 6


def test_a_failure_at_the_end_leaves_a_complete_run(train, tmp_path):
    def fail(callback):
        raise OSError("the service is down")

    with pytest.raises(TrainingFailed, match=r"on_end failed with OSError: the service is down"):
        train(Recorder(fail, ("end", 1)))
    assert (tmp_path / "run" / "checkpoints" / "step-00000006").exists()


def test_an_error_of_heedful_is_raised_as_it_is(train):
    def fail(callback):
        raise StorageError("no room")

    with pytest.raises(StorageError, match="no room"):
        train(Recorder(fail, ("log", 1)))


class Meddler(Recorder):
    """Empties what it is told, and changes torch's threads."""

    def record(self, name, value):
        torch.set_num_threads(2)
        if isinstance(value, dict):
            for part in value.values():
                if isinstance(part, list | dict):
                    part.clear()
            value.clear()


def test_what_a_callback_changes_is_seen_by_no_other_by_no_step_and_not_in_the_log(
    train, tmp_path, weights_without_callbacks
):
    threads = torch.get_num_threads()
    recorder = Recorder()
    result = train(Meddler(), recorder)
    assert torch.get_num_threads() == threads
    assert all(figures["loss"] for figures in recorder.named("step"))
    assert all(line["samples"] for line in recorder.named("validation"))
    assert "loss" in json.loads(result.log.read_text("utf-8").splitlines()[-2])
    assert (tmp_path / "run" / WEIGHTS).read_bytes() == weights_without_callbacks


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, MemoryError])
def test_what_ends_a_program_ends_it_after_the_checkpoint(train, tmp_path, kind):
    def leave(_):
        raise kind

    with pytest.raises(kind if kind is not MemoryError else TrainingFailed) as failure:
        train(Recorder(leave, ("step", 2)))
    assert ": ." not in str(failure.value)
    assert (tmp_path / "run/checkpoints/step-00000002").is_dir()
    assert train(resume=True).step == 6


@pytest.mark.parametrize("reason", ["", None, 5])
def test_a_reason_to_stop_is_text(reason):
    jaxtyping.config.update("jaxtyping_disable", True)  # a user has no such checks
    with pytest.raises(ArgumentError, match="must be text that is not empty"):
        Callback().stop(reason)
