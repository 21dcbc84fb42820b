"""Files of tests/cases name a trouble in the first line of their docstring."""

import ast
from pathlib import Path

import pytest

FILES = sorted((Path(__file__).parents[1] / "cases").glob("test_*.py"))


def test_there_are_cases():
    assert FILES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_file_says_its_trouble_in_one_sentence(file):
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    trouble = docstring.partition("\n")[0]
    assert trouble.endswith(".")
    assert 4 <= len(trouble.split()) <= 25
