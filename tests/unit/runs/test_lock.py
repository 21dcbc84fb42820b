import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from heedful.errors import HeedfulError, RunFolderError
from heedful.runs.average import average_checkpoints
from heedful.runs.folder import RunFolder, write_json
from heedful.runs.lock import LOCK, only_writer, refuse_if_written
from heedful.training.log import RunLog

HOLD = """
import sys
from pathlib import Path
from heedful.runs.lock import only_writer
with only_writer(Path(sys.argv[1]), "train"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / "step-00000001").mkdir(parents=True)
    with only_writer(tmp_path, "train"):
        for write in (
            lambda: only_writer(tmp_path, "train").__enter__(),
            lambda: refuse_if_written(tmp_path),
            lambda: average_checkpoints(RunFolder(tmp_path), 1, {}),
        ):
            told = rf"heedful train \(process {os.getpid()} on .+, since \d{{4}}-\d\d-\d\d "
            with pytest.raises(RunFolderError, match=told):
                write()
    with only_writer(tmp_path, "average"):
        pass
    assert not (tmp_path / LOCK).exists()


def test_the_lock_ends_with_its_process(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        with pytest.raises(RunFolderError, match=rf"process {process.pid} on"):
            refuse_if_written(tmp_path)
        process.kill()
        process.wait()
    assert (tmp_path / LOCK).exists()
    refuse_if_written(tmp_path)
    with only_writer(tmp_path, "train"):
        assert re.search(rf'"process": {os.getpid()}', (tmp_path / LOCK).read_text())


@pytest.mark.parametrize("name", [LOCK, ".config.json.partial", ".log.jsonl.partial"])
def test_a_link_in_a_folder_of_others_leads_nowhere(tmp_path: Path, name: str) -> None:
    mine, run = tmp_path / "mine", tmp_path / "run"
    mine.write_text("precious")
    run.mkdir()
    (run / name.replace("PID", str(os.getpid()))).symlink_to(mine)
    (run / "log.jsonl").write_text('{"step": 9}\n')
    with suppress(HeedfulError, OSError), only_writer(run, "train"):
        write_json(run / "config.json", {})
        with RunLog(run / "log.jsonl", 5, 10, quiet=True):
            pass
    assert mine.read_text() == "precious"


def test_a_log_that_is_a_link_to_nothing_creates_nothing_elsewhere(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "log.jsonl").symlink_to(tmp_path / "elsewhere")
    with RunLog(run / "log.jsonl", 0, 10, quiet=True):
        pass
    assert not (tmp_path / "elsewhere").exists()
    assert (run / "log.jsonl").is_file()
    assert not (run / "log.jsonl").is_symlink()


def test_a_folder_that_is_gone_does_not_matter_to_the_lock(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with only_writer(tmp_path / "run", "train"):
        (tmp_path / "run" / LOCK).unlink()
        (tmp_path / "run").rmdir()
    refuse_if_written(tmp_path / "run")
