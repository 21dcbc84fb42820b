import errno
import os
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from heedful.errors import SettingError, StorageError
from heedful.files import write_whole
from heedful.visualise.figure_files import (
    check_ending,
    drawing,
    printable,
    save_figure,
    write_output,
)
from tests.support.full_disk import room_for


def figure() -> Figure:
    drawn = Figure(figsize=(1, 1))
    drawn.text(0.5, 0.5, "a $dog$")
    return drawn


def test_other_endings_are_refused_before_anything_is_drawn():
    check_ending(Path("a.PNG"))
    with pytest.raises(
        SettingError, match=r"in one of \.png, \.svg, \.pdf, but 'a\.gif' has the ending '\.gif'"
    ):
        check_ending(Path("a.gif"))
    with pytest.raises(SettingError, match="has no ending"):
        check_ending(Path("a"))


@pytest.mark.parametrize(
    ("ending", "begins"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")]
)
def test_the_same_figure_gives_the_same_bytes(tmp_path, ending, begins):
    written = []
    for name in ("first", "second"):
        with drawing(8.0):
            save_figure(figure(), tmp_path / f"{name}.{ending}")
        written.append((tmp_path / f"{name}.{ending}").read_bytes())
    assert written[0].startswith(begins)
    assert written[0] == written[1]
    if ending == "svg":
        assert b"a $dog$" in written[0]  # a dollar is a dollar
    assert len(list(tmp_path.iterdir())) == 2


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(StorageError, match="name a file in an existing"):
        save_figure(figure(), tmp_path / "none" / "a.svg")


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_a_full_disk_keeps_the_old_figure(tmp_path, ending):
    out = tmp_path / f"a.{ending}"
    out.write_text("old")
    with (
        drawing(8.0),
        room_for(500),
        pytest.raises(StorageError, match=rf"The figure {out} .*File too large"),
    ):
        save_figure(figure(), out, [figure()])
    assert out.read_text() == "old"
    assert [*tmp_path.iterdir()] == [out]


def test_a_read_only_disk_is_told_with_the_name_that_was_given(tmp_path, monkeypatch):
    def refuse(path, *_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    # A read-only disk refuses to delete a file even if there is none of that name.
    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "unlink", refuse)
    out = tmp_path / "page.html"
    with pytest.raises(StorageError, match=f"The page {out} .*Read-only") as refusal:
        write_output(out, b"page", "page")
    assert ".partial" not in str(refusal.value)
    with pytest.raises(OSError, match="Read-only") as failure:
        write_whole(out, b"page")
    assert failure.value.filename == str(out)


def test_control_characters_are_written_out():
    assert printable("a\x07ä\n") == "a\\x07ä\\n"
