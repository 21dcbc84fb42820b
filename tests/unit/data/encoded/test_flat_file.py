import os
from pathlib import Path

import numpy as np
import pytest

from heedful.data.encoded.flat_file import FlatFile, FlatWriter, open_flat
from heedful.errors import RunFolderError

ROWS = [[3, 1, 2], [], [7], [5, 5]]
TYPE = np.dtype("<u2")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, dict[str, list[str]]]:
    """The rows in two files, written in two pieces, and the digests of both."""
    values, offsets = tmp_path / "values", tmp_path / "offsets"
    with values.open("wb") as first, offsets.open("wb") as second:
        writer = FlatWriter(first, second)
        for part in (ROWS[:2], ROWS[2:]):
            content = np.array([value for row in part for value in row], TYPE)
            writer.append(content.tobytes(), np.array([len(row) for row in part]))
    assert writer.total == 6
    return values, offsets, dict(zip(("values", "offsets"), writer.blocks(), strict=True))


def test_rows_are_read_back(files):
    values, offsets, digests = files
    rows = open_flat(values, offsets, TYPE, digests, "write it again")
    assert rows.offsets.tolist() == [0, 3, 3, 4, 6]
    assert rows.lengths.tolist() == [len(row) for row in ROWS]
    assert [rows.row(number).tolist() for number in range(len(rows))] == ROWS


def test_offsets_are_read_once(files, monkeypatch):
    values, offsets, digests = files
    read, fill = [], FlatFile.fill
    monkeypatch.setattr(
        FlatFile,
        "fill",
        lambda file, view, place: read.append((file.path, len(view))) or fill(file, view, place),
    )
    open_flat(values, offsets, TYPE, digests, "write it again")
    assert read == [(offsets, offsets.stat().st_size)]
    digests["offsets"] = ["0" * 32]
    with pytest.raises(RunFolderError, match="its digest differs"):
        open_flat(values, offsets, TYPE, digests, "write it again")


def test_a_file_that_is_cut_off_while_it_is_open_is_named_when_it_is_read(files):
    values, offsets, digests = files
    size = values.stat().st_size
    found = open_flat(values, offsets, TYPE, digests, "write it again").values
    os.truncate(values, size - 1)
    for read in (
        lambda: found.read(0, len(found)),
        found.check,
        lambda: found.gather(np.array([4]), np.array([2])),
    ):
        with pytest.raises(RunFolderError, match=f"{values} must keep its {size} bytes"):
            read()


def test_nothing_at_all_is_read_back(tmp_path):
    values, offsets = tmp_path / "values", tmp_path / "offsets"
    with values.open("wb") as first, offsets.open("wb") as second:
        digests = FlatWriter(first, second).blocks()
    known = dict(zip(("values", "offsets"), digests, strict=True))
    rows = open_flat(values, offsets, TYPE, known, "")
    assert len(rows.values) == len(rows) == 0 and rows.offsets.tolist() == [0]


def test_damage_is_told_with_the_remedy(files):
    values, offsets, digests = files
    content = values.read_bytes()

    def message() -> str:
        with pytest.raises(RunFolderError) as refusal:
            open_flat(values, offsets, TYPE, digests, "write it again").values.check()
        assert str(refusal.value).endswith("write it again.")
        return str(refusal.value)

    values.write_bytes(content[:-1])
    assert "it was cut off" in message()
    values.write_bytes(content[:-2])
    assert "must cover the 5 values" in message()
    values.write_bytes(b"\1" + content[1:])
    assert str(values) in message()
    values.unlink()
    assert "No such file" in message()
