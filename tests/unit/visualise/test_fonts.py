"""Labels find an installed font for each script, or a warning names one to install."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTCollection

from heedful.visualise.fonts import OWN_FONT, choose_faces, font_families

SOURCE = Path(__file__).parents[3] / "src"


def font(family: str, letters: str, style: str = "Regular") -> FontBuilder:
    """A font whose glyphs are black squares."""
    pen = TTGlyphPen(None)
    for step, point in enumerate(((0, 0), (0, 700), (700, 700), (700, 0))):
        (pen.lineTo if step else pen.moveTo)(point)
    pen.closePath()
    square = pen.glyph()
    names = [".notdef", *(f"u{ord(letter):x}" for letter in letters)]
    made = FontBuilder(1000, isTTF=True)
    made.setupGlyphOrder(names)
    made.setupCharacterMap(dict(zip(map(ord, letters), names[1:], strict=True)))
    made.setupGlyf(dict.fromkeys(names, square))
    made.setupHorizontalMetrics(dict.fromkeys(names, (800, 0)))
    made.setupHorizontalHeader(ascent=800, descent=-200)
    made.setupNameTable({"familyName": family, "styleName": style})
    made.setupOS2(usWeightClass=700 if style == "Bold" else 400)
    made.setupPost()
    return made


def write(folder: Path, name: str, *words: str) -> str:
    font(*words).save(folder / name)
    return str(folder / name)


def names(faces):
    return [Path(face.path).name for face in faces]


def test_as_few_fonts_as_possible_are_chosen(tmp_path):
    files = [
        write(tmp_path, "a.ttf", "Small Sans", "ต狗"),
        write(tmp_path, "b.ttf", "Large Sans", "ต狗अ"),
        write(tmp_path, "c.ttf", "Other Sans", "한"),
        write(tmp_path, "d.ttf", "Useless Sans", "z"),
    ]
    (tmp_path / "broken.ttf").write_bytes(b"no font at all")
    files.append(str(tmp_path / "broken.ttf"))
    chosen, missing = choose_faces("狗अต한ሀ", files)
    assert names(chosen) == ["b.ttf", "c.ttf"]
    assert missing == {"ሀ"}
    assert choose_faces("狗", []) == ([], {"狗"})


def test_an_upright_font_without_serifs_is_preferred(tmp_path):
    files = [
        write(tmp_path, "a.ttf", "Noto Sans Thai", "ต", "Bold"),
        write(tmp_path, "b.ttf", "Noto Serif Thai", "ต"),
        write(tmp_path, "c.ttf", "Noto Sans Thai", "ต"),
        write(tmp_path, "d.ttf", "Angsana", "ต"),
    ]
    assert names(choose_faces("ต", files)[0]) == ["c.ttf"]


@pytest.mark.parametrize(("text", "region"), [("狗", "SC"), ("狗が", "JP"), ("狗개", "KR")])
def test_a_collection_gives_the_face_of_the_language(tmp_path, text, region):
    regions = ("HK", "JP", "KR", "SC")
    collection = TTCollection()
    collection.fonts = [font(f"Noto Sans CJK {region}", "狗が개").font for region in regions]
    collection.save(tmp_path / "cjk.ttc")
    (face,), missing = choose_faces(text, [str(tmp_path / "cjk.ttc")])
    assert (face.number, missing) == (regions.index(region), frozenset())


def run(code: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, with matplotlib's list of fonts in a folder."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        encoding="utf-8",
        cwd=folder,
        env={
            **kept,
            "PYTHONPATH": str(SOURCE),
            "MPLBACKEND": "Agg",
            "MPLCONFIGDIR": str(folder),
            "PYTHONUTF8": "1",
            **more,
        },
    )


def test_a_font_that_is_installed_after_matplotlibs_first_start_is_used(tmp_path):
    # No other font has letters of all these scripts.
    letters = "ต狗अ\U00010570\U0001e290"
    code = f"from heedful.visualise.fonts import font_families as f; print(f([{letters!r}]))"
    place = {"XDG_DATA_HOME": str(tmp_path)}
    assert "Latecomer" not in run(code, tmp_path, **place).stdout
    (tmp_path / "fonts").mkdir()
    write(tmp_path / "fonts", "late.ttf", "Latecomer Sans", letters)
    assert run(code, tmp_path, **place).stdout == f"['{OWN_FONT}', 'Latecomer Sans']\n"


DRAW = """
from pathlib import Path
import numpy as np
from heedful.visualise.heatmap import attention_heatmap
from heedful.visualise.lines import Head, Panel, attention_lines
from heedful.visualise.multi_page import HeatmapPage, write_heatmap_pages
from heedful.visualise.report_page import ReportPage

words, one = ["the", "\u72d7", "\u0915"], np.eye(3)
sheet = ReportPage("a", "b", (("c",), ("d",)))
for ending in ENDINGS:
    out = Path(f"out{ending}")
    attention_heatmap(one, words, words, out)
    write_heatmap_pages([HeatmapPage("t", (("p", one),), tuple(words), tuple(words))], out)
    attention_lines([Panel("t", (Head(1, one),))], words, "run", out, sheet)
"""
WARNING = (
    "labels show boxes for letters that no font on this machine has (Devanagari, Han); install "
    "fonts such as Noto Sans Devanagari, Noto Sans CJK."
)


def test_a_script_without_a_font_is_named_with_one_to_install(tmp_path):
    alone = {"MPL_IGNORE_SYSTEM_FONTS": "1", "PYTHONWARNINGS": "always"}
    drawn = run(DRAW.replace("ENDINGS", "('.png', '.pdf')"), tmp_path, **alone)
    assert drawn.stderr.count(WARNING) == drawn.stderr.count("Warning") == 6
    # In these the reader's program chooses the font.
    assert run(DRAW.replace("ENDINGS", "('.svg',)"), tmp_path, **alone).stderr == ""
    assert "\u72d7" in (tmp_path / "out.svg").read_text(encoding="utf-8")


def test_signs_without_a_font_are_named_too(tmp_path):
    code = (
        "from heedful.visualise.fonts import font_families as f\n"
        "f(['\\U0001f9ff \\u0f40'], warns=True)"
    )
    warned = run(code, tmp_path, MPL_IGNORE_SYSTEM_FONTS="1").stderr
    assert "(Tibetan, symbols); install fonts such as Noto Serif Tibetan, " in warned


def test_what_matplotlibs_own_font_has_needs_no_other():
    assert font_families(["the dog", "l'été", "собака", "▁الكلب הכלב", "a\nb\x00"]) == [OWN_FONT]
