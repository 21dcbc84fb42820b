"""The rule by which lines are counted, and the budgets."""

from pathlib import Path

from tools import house

ROOT = Path(__file__).parents[2]


PROGRAM = "import runpy; runpy.run_path('tools/house.py', run_name='__main__')"


def test_everything_is_within_its_budget(heedful_cli):
    done = heedful_cli("-c", PROGRAM, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "training/trainer.py" in done.stdout
    assert "search/beam.py" in done.stdout


def test_lines_are_counted_by_what_stands_on_them():
    text = '''"""Head.

Two lines of it are not blank.
"""

import os  # code, although a comment follows


class Box:
    """One line."""

    # a comment
    size: int = 1
    """What the field means."""

    def text(self):
        return """not a
        docstring"""
'''
    code, docstrings, comments = house.code_lines(text)
    assert sorted(code) == [6, 9, 13, 16, 17, 18]
    assert sorted(docstrings) == [1, 2, 3, 4, 10, 14]
    assert sorted(comments) == [12]


def test_circles_are_the_strongly_connected_components():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": {"f"}, "f": {"e"}}
    assert house.circles(graph) == [["a", "b", "c"], ["e", "f"]]
    assert house.circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_imports_count_wherever_they_stand(tmp_path):
    file = tmp_path / "module.py"
    file.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n"
        "    from package.first import Name\n"
        "def function():\n"
        "    import package.second\n"
        "    from package import third\n"
    )
    known = dict.fromkeys(["package", "package.first", "package.second", "package.third"], file)
    assert house.imports_of(file, known) == {"package.first", "package.second", "package.third"}


def test_what_exceeds_its_budget_or_has_none_is_named():
    problems = house.over_budget(
        {"code_lines": {"a": 11, "b": 1}}, {"code_lines": {"a": 10, "gone": 5}}
    )
    assert problems == [
        "a: 11 code lines; the budget is 10",
        "b: no budget of code lines in tools/budgets.toml",
        "gone: a budget of code lines without files",
    ]
