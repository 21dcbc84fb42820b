"""What a training returns: its line, its curve, and its form in a notebook."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from heedful.training.result import TrainingResult

LINES = [
    {"step": 50, "loss": 6.5, "nll": 6.0},
    {"step": 100, "loss": 4.5, "nll": 4.0},
    {"step": 100, "valid_loss": 4.25, "bleu": 3.5},
    {"step": 150, "loss": 3.5, "nll": None},
    {"step": 150, "valid_loss": 3.75, "bleu": 9.5},
]
BEST = ({"step": 150, "valid_loss": 3.75, "bleu": 9.5},)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES), "utf-8")
    return path


def result(log, best=BEST):
    return TrainingResult("steps", log.parent, 150, best, log)


def test_it_says_its_loss_and_its_best_score(log):
    start = f"TrainingResult({str(log.parent)!r}, ended by steps at step 150, loss 3.500"
    assert repr(result(log)) == f"{start}, best BLEU 9.5 at step 150)"
    assert repr(result(log, ())) == f"{start})"
    by_loss = ({"step": 100, "valid_loss": 4.25},)
    assert repr(result(log, by_loss)) == f"{start}, best validation loss 4.250 at step 100)"


def test_its_curve_is_arrays(log):
    curve = result(log).curve
    assert curve.steps.tolist() == [50, 100, 150]
    assert curve.losses.tolist() == [6.0, 4.0, 3.5]  # the last line lacks one without smoothing
    assert curve.valid_steps.tolist() == [100, 150]
    assert curve.valid_losses.tolist() == [4.25, 3.75]
    assert [*curve.scores] == ["bleu"]
    assert curve.scores["bleu"].tolist() == [3.5, 9.5]


def test_a_notebook_shows_the_line_and_the_curves(log):
    html = result(log)._repr_html_()
    line, _, svg = html.partition("</div>")
    assert "best BLEU 9.5 at step 150" in line
    drawn = ElementTree.fromstring(svg)
    names = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"training loss", "validation loss", "BLEU"} <= {*names}
    assert len([*drawn.iter("{http://www.w3.org/2000/svg}polyline")]) == 3


def test_it_is_a_path_to_its_run(log):
    assert Path(result(log)) == log.parent


def test_a_log_that_is_gone_leaves_the_line(tmp_path):
    gone = result(tmp_path / "nowhere" / "log.jsonl", ())
    assert repr(gone).endswith("ended by steps at step 150)")
    assert len(gone.curve.steps) == 0
    assert gone._repr_html_().endswith("</div>")


def test_a_run_that_logged_no_number_has_no_curve(log):
    log.write_text('{"step": 50, "loss": null}\n')
    assert np.isnan(result(log).curve.losses).all()
    assert "loss" not in repr(result(log, ()))
    assert "svg" not in result(log)._repr_html_()
