"""Many pictures of attention in one file."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from heedful.errors import SettingError
from heedful.visualise.multi_page import HeatmapPage, write_heatmap_pages

ENGLISH = ("the", "big", "red", "dog")
FRENCH = ("le", "gros", "chien", "rouge", "</s>")


def weights(rows, columns, seed=1):
    found = np.random.default_rng(seed).random((rows, columns)) + 1e-3
    return found / found.sum(axis=-1, keepdims=True)


def sheet(title, rows=FRENCH, columns=ENGLISH, panels=3):
    named = [f"head {n}" for n in range(1, panels + 1)]
    each = tuple((name, weights(len(rows), len(columns), n)) for n, name in enumerate(named))
    return HeatmapPage(title, each, rows, columns)


SHEETS = [
    sheet("encoder, layer 1", ENGLISH, ENGLISH),
    sheet("encoder, layer 2", ENGLISH, ENGLISH),
    sheet("cross, layer 1"),
]


def words(svg):
    root = ElementTree.parse(svg).getroot()
    return ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]


def pages(pdf):
    return len(re.findall(rb"/Type /Page\b", pdf.read_bytes()))


def test_a_pdf_has_a_page_for_each_sheet(tmp_path):
    write_heatmap_pages(SHEETS, tmp_path / "all.pdf")
    write_heatmap_pages(SHEETS[:1], tmp_path / "one.pdf")
    assert pages(tmp_path / "all.pdf") == 3
    assert pages(tmp_path / "one.pdf") == 1


def test_a_picture_has_a_row_for_each_sheet_with_tokens_where_they_change(tmp_path):
    out = tmp_path / "all.svg"
    write_heatmap_pages(SHEETS, out)
    found = words(out)
    assert [one for one in found if "layer" in one] == [one.title for one in SHEETS]
    assert [one for one in found if one.startswith("head")] == ["head 1", "head 2", "head 3"] * 3
    # above the first row of panels and those of the third; left of the first two rows
    assert found.count("dog") == 3 + 3 + 2
    assert found.count("rouge") == 1


def test_numbers_are_written_into_the_squares(tmp_path):
    out = tmp_path / "one.svg"
    panel = np.array([[0.25, 0.75], [0.001, 0.999]])
    write_heatmap_pages(
        [HeatmapPage("", (("", panel),), ("a", "b"), ("c", "d"))], out, numbers=True
    )
    assert [one for one in words(out) if "." in one] == [".25", ".75", "1.00", "0.5"]


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_the_same_sheets_give_the_same_bytes_and_nothing_else(tmp_path, ending):
    for name in "ab":
        write_heatmap_pages(SHEETS, tmp_path / f"{name}{ending}")
    first, second = sorted(tmp_path.iterdir())
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("last", [40, pytest.param(200, marks=pytest.mark.soak)])
def test_many_tokens_become_a_file_that_can_be_opened(tmp_path, last):
    tokens = tuple(f"▁t{number}" for number in range(last + 1))
    many = [sheet("layer 1", tokens, tokens, panels=1)]
    write_heatmap_pages(many, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        picture.load()
    assert picture.width * picture.height < 65e6 / 3
    write_heatmap_pages(many, tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_size < 2e6 / 3
    assert f"▁t{last}" in words(tmp_path / "a.svg")


def test_what_does_not_fit_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"shape \(5, 4\)"):
        HeatmapPage("", (("a", weights(4, 5)),), FRENCH, ENGLISH)
    with pytest.raises(ValueError, match=r"but has \[\]"):
        HeatmapPage("", (), FRENCH, ENGLISH)
    with pytest.raises(SettingError, match=r"\.png, \.svg, \.pdf"):
        write_heatmap_pages(SHEETS, tmp_path / "a.gif")
    assert not list(tmp_path.iterdir())
