"""Atomic writes of files and folders."""

import pytest

from heedful.errors import StorageError
from heedful.files import make_folder, replacing_file


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


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "text").touch()
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    with pytest.raises(StorageError, match="text must be a folder, new or old, but"):
        make_folder(tmp_path / "text")
