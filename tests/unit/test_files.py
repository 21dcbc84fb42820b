"""Atomic writes of files and folders."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from heedful.data.datasets.checksums import SUMS, Checksums
from heedful.errors import StorageError
from heedful.files import make_folder, replacing, replacing_file, write_whole
from heedful.runs.folder import write_json
from heedful.tokenization.tokenizer import Tokenizer
from heedful.tokenization.vocabulary import Vocabulary
from heedful.tokenization.vocabulary_model import VocabularyModel
from heedful.training.log import RunLog
from tests.support.full_disk import room_for


def test_an_error_names_the_file_and_not_the_temporary_one(tmp_path):
    (tmp_path / "text").write_text("kept", encoding="utf-8")
    for path in (tmp_path / "none" / "x", tmp_path / "text" / "x"):
        with pytest.raises(OSError) as caught, replacing_file(path):
            raise AssertionError("the block must not be entered")
        assert caught.value.filename == str(path)


def test_a_file_is_replaced_only_by_a_whole_one(tmp_path):
    path = tmp_path / "text"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(KeyError), replacing_file(path) as stream:
        stream.write("new")
        raise KeyError
    assert path.read_text(encoding="utf-8") == "old"
    with replacing_file(path) as stream:
        stream.write("new")
    assert path.read_text(encoding="utf-8") == "new"
    assert [file.name for file in tmp_path.iterdir()] == ["text"]


def test_a_folder_leaves_those_that_others_fill_beside_it_alone(tmp_path):
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    with replacing(theirs) as their_beside:
        (their_beside / "content").touch()
        (tmp_path / ".mine.partial").mkdir()  # as a process that was killed leaves it
        with replacing(mine) as beside:
            (beside / "content").touch()
    assert sorted(path.name for path in tmp_path.rglob("*")) == [*["content"] * 2, "mine", "theirs"]


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "text").touch()
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    with pytest.raises(StorageError, match="text must be a new or existing folder, but"):
        make_folder(tmp_path / "text")


def test_a_folder_may_be_deleted_while_it_is_made(tmp_path):
    folder = tmp_path / "folder"
    stop = threading.Event()

    def delete():
        while not stop.is_set():
            with suppress(FileNotFoundError):
                folder.rmdir()

    with ThreadPoolExecutor(1) as threads:
        deleting = threads.submit(delete)
        try:
            for _ in range(5000):
                make_folder(folder)
        finally:
            stop.set()
        deleting.result()


def save_tokenizer(folder):
    words = VocabularyModel(Vocabulary([f"word{number}" for number in range(50)]))
    Tokenizer(words, source_language="", target_language="").save(folder)


WRITERS = {
    "file": lambda folder: write_whole(folder / "a", b"x" * 99),
    "alone": lambda folder: write_whole(folder / "a", b"x" * 99, alone=True),
    "json": lambda folder: write_json(folder / "a.json", {"text": "x" * 99}),
    "checksums": lambda folder: Checksums(folder, "corpus", {"a": "0" * 64}).write(),
    "tokenizer": save_tokenizer,
    "log": lambda folder: RunLog(folder / "log.jsonl", 5, 10, quiet=True).__exit__(),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_does_not_fit_leaves_nothing_beside(name, tmp_path):
    if name == "log":
        (tmp_path / "log.jsonl").write_text('{"step": 1, "loss": 2.5}\n' * 9, encoding="utf-8")
    before = {entry.name for entry in os.scandir(tmp_path)}
    with pytest.raises((StorageError, OSError), match="File too large"), room_for(20):
        WRITERS[name](tmp_path)
    assert {entry.name for entry in os.scandir(tmp_path)} == before
    WRITERS[name](tmp_path)
    assert not [entry.name for entry in os.scandir(tmp_path) if entry.name.startswith(".")]


def test_what_was_there_stays_when_its_successor_does_not_fit(tmp_path):
    Checksums(tmp_path, "old").write()
    before = (tmp_path / SUMS).read_bytes()
    with pytest.raises(StorageError), room_for(20):
        Checksums(tmp_path, "new", {"a": "0" * 64}).write()
    assert (tmp_path / SUMS).read_bytes() == before
    assert [entry.name for entry in os.scandir(tmp_path)] == [SUMS]


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a", b"x")
    assert list(tmp_path.iterdir()) == []
