from pathlib import Path

import pytest

from heedful.config.load import load_config
from heedful.errors import (
    DeviceError,
    HeedfulError,
    RunFolderError,
    StorageError,
    TrainingFailed,
)
from heedful.preparation.raw_text import RawText
from heedful.runs.folder import RunFolder
from heedful.runs.lock import LOCK
from heedful.training.run_folder import Claim, create_run_folder
from heedful.training.setup import TrainingSetup
from heedful.training.state import Counters, TrainState


def begin(
    path: Path, error: BaseException, *, resume: bool = False, steps: int | None = None
) -> None:
    """Begin a run that fails; with `steps`, in the loop."""
    folder = RunFolder(path)
    setup = TrainingSetup(load_config("tiny"), RawText(()), {}, folder=folder, resume=resume)
    with create_run_folder(folder, setup) as claim:
        (path / "data").mkdir()
        (path / "data" / "ids").touch()
        (path / "log.jsonl").touch()
        if steps is not None:
            claim.trains, claim.train_state = True, TrainState(Counters(step=steps))
        raise error


@pytest.mark.parametrize("error", [DeviceError(""), TrainingFailed(""), RuntimeError("")])
@pytest.mark.parametrize("resume", [False, True])
def test_a_refused_start_leaves_nothing(tmp_path: Path, error: Exception, resume: bool) -> None:
    if not resume:  # which needs a folder that is there
        with pytest.raises(type(error)):
            begin(tmp_path / "deep" / "run", error)
        assert not any(tmp_path.iterdir())
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / LOCK).touch()  # of a process that was killed
    with pytest.raises(type(error)):
        begin(tmp_path / "run", error, resume=resume)
    assert [path.name for path in tmp_path.rglob("*")] == ["run"]


def test_a_refusal_at_the_first_step_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError):
        begin(tmp_path / "run", RunFolderError(""), steps=0)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "steps"),
    [
        (StorageError(""), None),
        (HeedfulError("finished shards are kept"), None),
        (KeyboardInterrupt(), None),
        (RunFolderError(""), 1),
        (TrainingFailed("see the log"), 0),
    ],
)
def test_what_is_of_use_stays(tmp_path: Path, error: BaseException, steps: int | None) -> None:
    with pytest.raises(type(error)):
        begin(tmp_path / "run", error, steps=steps)
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"data", "log.jsonl"}


def test_a_run_that_is_there_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").touch()
    with pytest.raises(DeviceError):
        begin(tmp_path, DeviceError(""), resume=True)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"data", "log.jsonl", "tokenizer.json"}


def test_events_of_a_refused_start_go_too(tmp_path: Path) -> None:
    claim = Claim()
    claim.will_make(tmp_path / "run")
    claim.will_make(tmp_path / "events" / "run")
    (tmp_path / "events" / "run").mkdir(parents=True)
    (tmp_path / "events" / "run" / "events.out.tfevents.1").touch()
    claim.cleanup_if_refused(DeviceError(""))
    assert not any(tmp_path.iterdir())
