"""The quickstart as a whole, with a training too short to learn much."""

import json
import re

import pytest

from heedful.errors import RunFolderError
from heedful.quickstart import SENTENCE, quickstart
from tests.cli.test_attend import WITHOUT
from tests.support.commands import refused

# In a process where the types of every call are not checked.
QUICKLY = """
import json, sys
from pathlib import Path
from heedful.quickstart import quickstart

short = ("train.steps=4", "train.batch_tokens=512", "train.validate_steps=4")
short += ("data.vocabulary_size=400",)
told, sizes, resume = [], (400, 10, 6), sys.argv[2] == "again"
out = Path(sys.argv[1])
bleu = quickstart(
    out, device="cpu", say=told.append, settings=short, sizes=sizes, resume=resume
)
print(json.dumps([bleu, told]))
"""


def made(heedful_cli, out, how="once"):
    """The BLEU and what was told."""
    done = heedful_cli("-c", QUICKLY, out, how)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_refused_quickstart_leaves_nothing(tmp_path, heedful_cli):
    done = heedful_cli("quickstart", "--out", tmp_path / "new" / "quick", "--threads", 100_000)
    assert done.returncode == 2
    assert "threads must be from 0" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_it_ends_before_it_begins(tmp_path, heedful_cli):
    done = heedful_cli("-c", WITHOUT, "quickstart", "--out", tmp_path / "quick")
    refused(done, "pip install 'heedful[plot]'")
    assert list(tmp_path.iterdir()) == []


def test_the_quickstart_makes_everything_it_names(tmp_path, heedful_cli):
    out = tmp_path / "quick"
    bleu, told = made(heedful_cli, out)
    assert 0 <= bleu <= 100
    text = "\n".join(told)
    for part in (
        "BLEU",
        "unseen sentences",
        f"{SENTENCE}  ->",
        str(out / "attention.png"),
        str(out / "attention.html"),
    ):
        assert part in text
    assert re.search(r"computed from the attention \(layer=\d.*\): error rate \d+\.\d%", text)
    assert (out / "text" / "test.links").read_text().splitlines()[0] == "0-0 1-1 2-3 3-2"
    assert (out / "attention.png").read_bytes().startswith(b"\x89PNG")
    assert SENTENCE in (out / "attention.html").read_text(encoding="utf-8")
    for name in ("train", "valid", "test"):
        for language in ("en", "fr"):
            assert (out / "text" / f"{name}.{language}").stat().st_size > 100
    trained = (out / "text" / "train.en").read_text().splitlines()
    assert SENTENCE not in trained
    assert SENTENCE in (out / "text" / "test.en").read_text().splitlines()
    done = heedful_cli("translate", out / "run", stdin=SENTENCE + "\n")
    assert done.returncode == 0, done.stderr
    with pytest.raises(RunFolderError, match="new or empty folder"):
        quickstart(out, say=told.append)
    (out / "attention.html").unlink()
    assert made(heedful_cli, out, "again")[0] == bleu
    assert (out / "attention.html").exists()
    with pytest.raises(RunFolderError, match="--resume continues an interrupted quickstart"):
        quickstart(tmp_path / "gone", say=told.append, resume=True)
