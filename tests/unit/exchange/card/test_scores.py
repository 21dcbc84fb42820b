import json
import shutil
from pathlib import Path

import pytest

from heedful.errors import ExchangeError
from heedful.exchange.card.scores import evaluated_scores, recorded_scores
from heedful.runs.folder import RunFolder
from heedful.runs.run import Run

RUN = Path(__file__).parents[3] / "formats" / "1" / "run"
SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"


@pytest.fixture
def run(tmp_path):
    shutil.copytree(RUN, tmp_path / "run")
    return Run.open(tmp_path / "run")


def validated(folder: RunFolder, step: int, **scores: object) -> None:
    with folder.log.open("a") as file:
        file.write(json.dumps({"step": step, "valid_loss": 1.0, **scores}) + "\n")


def test_the_validation_of_the_same_step_counts(run):
    last = run.folder.steps()[-1]
    validated(run.folder, last, bleu=99.0, bleu_signature="of an earlier sitting")
    validated(run.folder, last, bleu=12.3456, chrf=float("nan"), bleu_signature=SIGNATURE)
    validated(run.folder, last + 1, bleu=50.0, bleu_signature=SIGNATURE)
    (score,) = recorded_scores(run.folder, run.checkpoint_folder("last"))
    assert score[1:] == ("BLEU", "bleu", 12.35, SIGNATURE)


def test_what_was_not_validated_has_no_score(run):
    last = run.folder.steps()[-1]
    validated(run.folder, last + 1, bleu=50.0, bleu_signature=SIGNATURE)
    assert not any(
        score.value == 50.0 for score in recorded_scores(run.folder, run.checkpoint_folder("last"))
    )
    run.folder.log.unlink()
    assert recorded_scores(run.folder, run.checkpoint_folder("last")) == []


def test_an_evaluation_is_read(tmp_path):
    path = tmp_path / "newstest2014.json"
    chrf = {"score": 55.554, "signature": "c"}
    comet = {"score": 0.83456, "signature": "m"}
    scores = {"bleu": {"score": True}, "chrf": chrf, "ter": None, "comet": comet, "x": 1}
    path.write_text(json.dumps(scores))
    assert evaluated_scores(path) == [
        ("newstest2014", "chrF", "chrf", 55.55, "c"),
        ("newstest2014", "COMET", "comet", 0.8346, "m"),
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"\xff\xfe", "it is not JSON"),
        (b"[1]", "no score with a signature"),
        (b'{"bleu": {"score": NaN, "signature": "s"}}', "no score with a signature"),
        (b'{"bleu": {"score": 3, "signature": ""}}', "no score with a signature"),
        (None, "cannot be read: No such file"),
    ],
)
def test_anything_else_is_refused(content, reason, tmp_path):
    path = tmp_path / "scores.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ExchangeError, match=f"evaluate --json.*{reason}"):
        evaluated_scores(path)
