"""The reading path and the glossary name files that exist."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
DRAWING = runpy.run_path(str(ROOT / "docs" / "draw_reading_path.py"))
FILES = [file for files, _ in DRAWING["READING_PATH"] for file in files]


def test_the_page_links_the_files_of_the_picture_in_their_order():
    page = (ROOT / "docs" / "how-it-is-built.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\(\.\./src/heedful/([\w/]+\.py)\)", page)
    assert [file for file in linked if file in FILES] == FILES
    assert all((ROOT / "src" / "heedful" / file).is_file() for file in linked)


def test_the_picture_is_what_the_script_draws():
    assert DRAWING["PICTURE"].read_text(encoding="utf-8") == DRAWING["picture"]()


def test_the_picture_of_the_schedules_is_what_the_script_draws():
    drawing = runpy.run_path(str(ROOT / "docs" / "draw_schedules.py"))
    assert drawing["PICTURE"].read_text(encoding="utf-8") == drawing["picture"]()


def test_the_files_of_the_glossary_exist():
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    files = set(re.findall(r"`([\w/]+\.py)`", glossary))
    assert len(files) > 30
    assert [file for file in files if not (ROOT / "src" / "heedful" / file).is_file()] == []
