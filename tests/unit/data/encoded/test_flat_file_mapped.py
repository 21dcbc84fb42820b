from pathlib import Path

import numpy as np
import pytest

from heedful.data.encoded.flat_file import MappedFile
from heedful.errors import RunFolderError

TYPE = np.dtype("<u4")


def test_the_numbers_of_a_file_are_mapped_and_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(5, dtype=TYPE).tobytes())
    file = MappedFile(path, TYPE, 5, "again")
    assert file.values.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="read-only"):
        file.values[0] = 1
    file.require_size()


def test_a_size_is_that_of_the_mapped_file_not_of_its_successor(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(bytes(16))
    file = MappedFile(path, TYPE, 4, "make it again")
    path.rename(tmp_path / "old")
    path.write_bytes(b"")
    file.require_size()
    (tmp_path / "old").write_bytes(bytes(9))
    with pytest.raises(RunFolderError) as caught:
        file.require_size()
    assert str(caught.value) == (
        f"{path} must keep its 16 bytes while it is read, but has 9 now: something cut it off. "
        f"Checkpoints are intact; for {tmp_path}, make it again."
    )


def test_an_empty_file_has_no_numbers(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    file = MappedFile(tmp_path / "empty", TYPE, 0, "again")
    file.require_size()
    assert file.values.tolist() == []


def test_what_is_not_there_or_too_short_cannot_be_mapped(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        MappedFile(tmp_path / "none", TYPE, 1, "again")
    (tmp_path / "short").write_bytes(b"abc")
    with pytest.raises(ValueError, match="mmap length"):
        MappedFile(tmp_path / "short", TYPE, 1, "again")
