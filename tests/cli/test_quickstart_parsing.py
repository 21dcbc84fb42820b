"""The quickstart of parsing as a whole, with a training too short to learn much."""

import json

import pytest

from heedful.tasks.parsing.quickstart import SENTENCE
from heedful.tasks.parsing.trees.read import read_tree_lines

pytestmark = pytest.mark.task("parsing")

QUICKLY = """
import json, sys
from pathlib import Path
from heedful.tasks.parsing.quickstart import quickstart

short = ("train.steps=4", "train.validate_steps=4", "data.vocabulary_size=120")
told, sizes, resume = [], (400, 8, 6), sys.argv[2] == "again"
f1 = quickstart(
    Path(sys.argv[1]), device="cpu", say=told.append, settings=short, sizes=sizes, resume=resume
)
print(json.dumps([f1, told]))
"""


def made(heedful_cli, out, how="once"):
    done = heedful_cli("-c", QUICKLY, out, how)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_quickstart_makes_everything_it_names(tmp_path, heedful_cli):
    out = tmp_path / "quick"
    f1, told = made(heedful_cli, out)
    assert 0 <= f1 <= 100
    text = "\n".join(told)
    for part in (
        "F1 ",
        "unseen sentences",
        "would be malformed",
        f"{SENTENCE}\n",
        str(out / "run"),
    ):
        assert part in text
    assert (out / "tree.svg").read_text(encoding="utf-8").startswith("<svg")
    trees = read_tree_lines(out / "predicted.trees")
    gold = read_tree_lines(out / "text" / "test.trees")
    assert [tree.words for tree in trees] == [tree.words for tree in gold]
    assert SENTENCE in (out / "attention.html").read_text(encoding="utf-8")
    again, _ = made(heedful_cli, out, "again")
    assert again == f1


def test_a_refused_quickstart_leaves_nothing(tmp_path, heedful_cli):
    out = tmp_path / "new" / "quick"
    done = heedful_cli("quickstart", "--task", "parsing", "--out", out, "--threads", 100_000)
    assert done.returncode == 2
    assert "threads must be from 0" in done.stderr
    assert list(tmp_path.iterdir()) == []
    done = heedful_cli("quickstart", "--task", "singing", "--out", out)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
