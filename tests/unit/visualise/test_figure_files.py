from pathlib import Path

import pytest
from matplotlib.figure import Figure

from heedful.errors import SettingError, StorageError
from heedful.visualise.figure_files import check_ending, drawing, printable, save_figure


def figure() -> Figure:
    drawn = Figure(figsize=(1, 1))
    drawn.text(0.5, 0.5, "a $dog$")
    return drawn


def test_other_endings_are_refused_before_anything_is_drawn():
    check_ending(Path("a.PNG"))
    with pytest.raises(
        SettingError, match=r"ends in \.png, \.svg, \.pdf, but 'a\.gif' ends in '\.gif'"
    ):
        check_ending(Path("a.gif"))
    with pytest.raises(SettingError, match="in 'nothing'"):
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
    with pytest.raises(StorageError, match="name a folder that exists"):
        save_figure(figure(), tmp_path / "none" / "a.svg")


def test_control_characters_are_written_out():
    assert printable("a\x07ä\n") == "a\\x07ä\\n"
