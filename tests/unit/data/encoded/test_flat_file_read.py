from pathlib import Path

import numpy as np
import pytest

from heedful.data.encoded.flat_file import BlockDigests, CheckedValues, FlatFile
from heedful.errors import RunFolderError

TYPE = np.dtype("<u4")


def test_parts_of_a_file_are_read(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(5, dtype=TYPE).tobytes())
    file = FlatFile(path, TYPE, 5, "again")
    assert file.nbytes == 20
    assert [file.read(*part).tolist() for part in ((0, 5), (1, 3), (2, 2))] == [
        *([0, 1, 2, 3, 4], [1, 2]),
        [],
    ]


def test_rows_are_gathered_in_the_order_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(1000, dtype=TYPE).tobytes())
    digests = BlockDigests()
    digests.update(path.read_bytes())
    file = FlatFile(path, TYPE, 1000, "again")
    values = CheckedValues(file, digests.hexdigests(), limit=1000)
    begins, lengths = np.array([700, 3, 5, 999]), np.array([4, 2, 0, 1])
    whole = np.arange(1000)
    rows = [whole[a : a + n] for a, n in zip(begins, lengths, strict=True)]
    assert values.gather(begins, lengths).tolist() == np.concatenate(rows).tolist()
    assert values.gather(begins[:0], lengths[:0]).tolist() == []


def test_what_is_read_is_the_opened_file_not_its_successor(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(bytes(16))
    file = FlatFile(path, TYPE, 4, "make it again")
    path.rename(tmp_path / "old")
    path.write_bytes(b"")
    assert file.read(0, 4).tolist() == [0, 0, 0, 0]
    (tmp_path / "old").write_bytes(bytes(9))
    assert file.read(0, 2).tolist() == [0, 0]  # what is still there
    with pytest.raises(RunFolderError) as caught:
        file.read(0, 3)
    assert str(caught.value) == (
        f"{path} must keep its 16 bytes while it is read, but has 9 now: it was cut off. "
        f"Checkpoints are intact; for {tmp_path}, make it again."
    )


def test_an_empty_file_has_no_numbers(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert FlatFile(tmp_path / "empty", TYPE, 0, "again").read(0, 0).tolist() == []


def test_what_is_not_there_or_no_file_is_named_with_the_remedy(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(RunFolderError, match=f"{reason}.*; make it again"):
            FlatFile(path, TYPE, 1, "make it again")
