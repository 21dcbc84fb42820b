"""The files of the web page: complete, nothing inline, nothing from other hosts."""

import re
import tomllib
from pathlib import Path

import heedful.serve.page
from heedful.serve.page import PAGE_HEADERS, page_files

FOLDER = Path(heedful.serve.page.__file__).parent
ROOT = Path(__file__).parents[3]


def test_every_file_that_the_page_names_is_there():
    files = page_files()
    page = files["/"].content.decode()
    named = set(re.findall(r'(?:href|src)="(page/[^"]+)"', page))
    assert {f"/{name}" for name in named} == set(files) - {"/"}


def test_the_page_holds_nothing_inline_and_names_no_other_host():
    files = page_files()
    page = files["/"].content.decode()
    assert re.findall(r"<style|<script(?![^>]*\ssrc=)|\sstyle=|\son[a-z]+=", page) == []
    for path, file in files.items():
        text = file.content.decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//[a-z]+\.[a-z]", text), path
        assert not re.search(r"\binnerHTML|outerHTML|insertAdjacentHTML|document\.write", text), (
            path
        )


def test_the_policy_lets_in_files_of_the_server_alone():
    policy = dict(
        part.strip().split(" ", 1) for part in PAGE_HEADERS["Content-Security-Policy"].split(";")
    )
    assert policy.pop("img-src") == "'self' data:"
    assert {policy.pop(f"{kind}-src") for kind in ("script", "style", "connect")} == {"'self'"}
    assert set(policy.values()) == {"'none'"} and "default-src" in policy


def test_a_tag_changes_with_its_file_alone():
    tags = [file.tag for file in page_files().values()]
    assert tags == [file.tag for file in page_files().values()]
    assert len(set(tags)) == len(tags)
    assert all(re.fullmatch(r'"[0-9a-f]{20}"', tag) for tag in tags)


def test_all_files_are_in_the_wheel():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["heedful.serve.page"]
    there = {file for file in FOLDER.iterdir() if file.is_file() and file.suffix != ".py"}
    assert {file for pattern in patterns for file in FOLDER.glob(pattern)} == there
