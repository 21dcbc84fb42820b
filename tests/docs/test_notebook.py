"""The page on Python and notebooks is executed as a notebook, and shows what it says."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
from tests.support.pages import DOCS, KEPT, TRACKERS, blocks, can_run

from heedful.data.toy_grammar.corpus import write_grammar_text

PAGE = DOCS / "howto" / "python.md"
EXECUTE = "from nbclient.cli import main; main()"
QUIET = """
quiet = heedful.train(
    "tiny", source="train.en", target="train.fr", out="runs/quiet", quiet=True,
    settings={"train.steps": 2, "train.batch_tokens": 256},
)
"""
BARE = QUIET.replace("quiet = ", "").replace("runs/quiet", "runs/bare").replace(" quiet=True,", "")


def page_cells():
    """The Python blocks of the page whose libraries are here."""
    return [
        block.text for block in blocks(PAGE) if block.language == "python" and can_run(block.text)
    ]


def as_notebook(sources):
    """A notebook of these cells, as its file has it."""
    cells = [
        {
            "cell_type": "code",
            "id": f"cell-{number}",
            "metadata": {},
            "source": source,
            "execution_count": None,
            "outputs": [],
        }
        for number, source in enumerate(sources)
    ]
    kernel = {"name": "python3", "display_name": "Python", "language": "python"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder in which the notebook runs."""
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
def executed(folder):
    """The outputs of each cell, by its source."""
    write_grammar_text(folder, (KEPT["train"], KEPT["valid"], KEPT["test"]))
    book = folder / "page.ipynb"
    book.write_text(json.dumps(as_notebook([*page_cells(), QUIET, BARE])), "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", EXECUTE, "--inplace", "--timeout=300", book],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    cells = json.loads(book.read_text("utf-8"))["cells"]
    return {"".join(cell["source"]): cell["outputs"] for cell in cells}


def cell_with(executed, words):
    """The outputs of the one cell whose source has some words."""
    (outputs,) = (outputs for source, outputs in executed.items() if words in source)
    return outputs


def test_a_training_shows_one_output_that_ends_as_its_result(executed):
    shown, printed = cell_with(executed, 'out="runs/python"')
    assert shown["output_type"] == "display_data"  # updated in place: a notebook stores the last
    html = "".join(shown["data"]["text/html"])
    assert "ended by steps at step 6" in html
    assert "best BLEU" in html
    assert html.count("<svg") == 1
    assert html.count("<polyline") == 3
    assert printed["name"] == "stdout"
    assert "".join(printed["text"]).startswith("TrainingResult('runs/python', ended by steps")


def test_a_result_that_ends_a_cell_is_shown_once(executed):
    line, value = executed[BARE]
    assert (line["output_type"], value["output_type"]) == ("display_data", "execute_result")
    assert "".join(line["data"]["text/html"]) == ""
    assert "".join(value["data"]["text/html"]).count("<svg") == 1


def test_a_picture_of_the_curves_is_shown(executed):
    (drawn,) = (
        output
        for output in cell_with(executed, "heedful.plot(")
        if output["output_type"] == "execute_result"
    )
    assert "<svg" in "".join(drawn["data"]["image/svg+xml"])
    assert "best perplexity" in "".join(drawn["data"]["text/plain"])


def test_a_quiet_training_shows_nothing(executed):
    assert executed[QUIET] == []


RECORDS = {
    "wandb": "wandb/offline-run-*/*.wandb",
    "mlflow": "mlflow.db",
    "optuna": "runs/trial-2",
}


@pytest.mark.parametrize("library", RECORDS)
def test_a_library_has_its_record_where_it_is_installed(library, executed, folder):
    cells = [source for source in executed if f"import {library}\n" in source]
    is_here = find_spec(library) is not None
    assert len(cells) == is_here
    assert bool(list(folder.glob(RECORDS[library]))) == is_here


def test_no_cell_writes_to_stderr(executed):
    for source, outputs in executed.items():
        if not TRACKERS.search(source):
            assert not [output for output in outputs if output.get("name") == "stderr"], source
