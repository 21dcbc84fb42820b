"""A small model must learn small tasks; a loop that is subtly wrong does not."""

import random

import pytest

from heedful.checkpoint.average import average_checkpoints
from heedful.checkpoint.rundir import RunFolder
from heedful.evaluation.bleu import corpus_bleu
from heedful.workflow.train import train
from heedful.workflow.translator import Translator


def reversals(count, seed):
    """Write letters on one side and the same letters backwards on the other."""
    chooser = random.Random(seed)
    lines = []
    while len(lines) < count:
        letters = chooser.choices("abcdefghij", k=chooser.randint(3, 8))
        lines.append((" ".join(letters), " ".join(reversed(letters))))
    return lines


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reverse")
    pairs = reversals(4000, seed=1)
    (folder / "train.x").write_text("".join(f"{x}\n" for x, _ in pairs))
    (folder / "train.y").write_text("".join(f"{y}\n" for _, y in pairs))
    return folder


RECIPES = {
    "paper": ("train.precision=fp32",),
    "t2t": (
        "model.positions=halves",
        "model.start=zero",
        "train.smoothing_form=others",
        "search.finish_among=twice",
        "train.precision=bf16",
    ),
    "pre-norm": ("model.norm=pre", "model.tie=output", "train.precision=bf16"),
}


@pytest.mark.parametrize("reading", RECIPES)
def test_reversing_letters_is_learned(task, tmp_path, reading):
    settings = [
        "data.vocabulary_size=30",
        "train.steps=400",
        "train.batch_tokens=2048",
        "train.warmup=150",
        "train.learning_rate_factor=1.2",
        "train.checkpoint_steps=20",
        *RECIPES[reading],
    ]
    out = tmp_path / "run"
    files = {"source": task / "train.x", "target": task / "train.y"}
    assert train("tiny", **files, out=out, settings=settings, quiet=True) == "steps"
    average_checkpoints(RunFolder(out), 5)
    unseen = [pair for pair in reversals(300, seed=2) if pair not in set(reversals(4000, seed=1))]
    translator = Translator.load(out, precision="fp32")
    found = translator.translate([x for x, _ in unseen])
    right = sum(t.text == y for t, (_, y) in zip(found, unseen, strict=True))
    assert right / len(unseen) >= 0.9
    assert corpus_bleu([t.text for t in found], [y for _, y in unseen]) >= 90
