"""The stand-alone page as a file; what it does in a browser is tested in tests/browser."""

import re

import pytest

from heedful.errors import StorageError
from heedful.visualise.explorer import (
    explorer_page,
    explorer_script,
    explorer_styles,
    write_explorer,
)
from tests.support import records


def test_the_same_record_gives_the_same_bytes(tmp_path):
    for name in ("one.html", "two.html"):
        write_explorer(records.record(), tmp_path / name)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(StorageError, match="could not be written"):
        write_explorer(records.record(), tmp_path / "nowhere" / "page.html")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(StorageError, match=r"folder\.html"):
        write_explorer(records.record(), tmp_path / "folder.html")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.html"]


def test_the_page_names_no_address_but_that_of_svg():
    page = explorer_page(records.record())
    assert set(re.findall(r"[a-z]+://[\w.]+", page)) == {"http://www.w3.org"}
    assert not re.search(r"(src|href)=\"(?!data:,)", page)


def test_text_cannot_end_the_script_that_holds_it():
    hostile = records.model(records.HOSTILE, records.HOSTILE)
    page = explorer_page(records.record(hostile, title="</script><!--"))
    assert page.count("</script>") == 2
    assert "<!--" not in page
    assert "$" + "{title}" in page, "a token that looks like a place of the template stays"


def test_the_code_writes_no_markup_and_no_style_attribute():
    code = explorer_script()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b", code)
    assert "'style'" not in code
    assert "fetch(" not in code
    assert "</script" not in code


def test_every_rule_stays_inside_the_explorer():
    rules = re.sub(r"/\*.*?\*/", "", explorer_styles(), flags=re.DOTALL)
    selectors = [line.split("{")[0].strip() for line in rules.splitlines() if "{" in line]
    outside = [one for one in selectors if not one.startswith((".heedful-explorer", "@"))]
    assert outside == []
