"""Folders of uploads: private to one, deleted at its end, and by the next one after a kill."""

import errno
import fcntl
import os
import signal
import subprocess
import sys

import pytest

from heedful.errors import StorageError
from heedful.exchange.hub.upload_folder import remove_abandoned, upload_folder

FILL = """
import time
from heedful.errors import StorageError
from heedful.exchange.hub.upload_folder import upload_folder
with upload_folder() as folder:
    (folder / "model.safetensors").write_bytes(b"1")
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def test_a_folder_is_deleted_at_the_end_even_after_an_error(place):
    with pytest.raises(ValueError, match="x"), upload_folder() as folder:
        assert folder.parent == place
        (folder / "a").write_text("b")
        raise ValueError("x")
    assert not list(place.iterdir())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_killed_upload_left_is_deleted_by_the_next(place, number):
    killed, running = (
        subprocess.Popen([sys.executable, "-c", FILL], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    )
    try:
        folders = [process.stdout.readline().strip() for process in (killed, running)]
        killed.send_signal(number)
        killed.wait()
        assert os.path.isdir(folders[0])
        with upload_folder():
            left = [os.path.isdir(folder) for folder in folders]
        assert left == [False, True]
    finally:
        for process in (killed, running):
            process.kill()
            process.communicate()
    remove_abandoned()
    assert not list(place.iterdir())


def test_a_link_and_a_file_of_that_name_are_left_alone(place):
    (place / "mine").mkdir()
    (place / "mine" / "text").write_text("kept")
    (place / "heedful-push-link").symlink_to(place / "mine")
    (place / "heedful-push-file").write_text("kept")
    remove_abandoned()
    assert len(list(place.iterdir())) == 3
    assert (place / "mine" / "text").read_text() == "kept"


def test_a_disk_that_knows_no_locks_is_named(place, monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StorageError, match=f"{place}: No locks available"), upload_folder():
        pass
