"""A convolutional model by the commands of every other one."""

import numpy as np
import pytest

from heedful.translation.translator import Translator
from tests.support.commands import not_exported, refused, resumes_alike, train_run

pytestmark = pytest.mark.family("convs2s")

SETTINGS = (
    "model.encoder=convs2s",
    "model.decoder=convs2s",
    "model.positions=learned",
    "model.convs2s.encoder_layers=2x(16,3)",
    "model.convs2s.decoder_layers=2x(16,3)",
    "train.precision=fp32",
    "train.steps=6",
    "train.batch_tokens=256",
    "train.checkpoint_steps=3",
    "train.validate_steps=none",
)
SENTENCE = "the big red dog"


@pytest.fixture(scope="module")
def run(heedful_cli, text, tmp_path_factory):
    out = tmp_path_factory.mktemp("convs2s") / "run"
    return train_run(heedful_cli, text, out, *SETTINGS)


@pytest.mark.soak
def test_a_resumed_run_has_the_same_bytes(heedful_cli, text, run, tmp_path):
    resumes_alike(heedful_cli, text, run, tmp_path / "again", SETTINGS, 3, 6)


def test_it_translates_aligns_and_scores(heedful_cli, run):
    translator = Translator.load(run, device="cpu", precision="fp32")
    one = translator.translate(SENTENCE, alignments=True, max_length=5)
    assert one.alignment.source_words == tuple(SENTENCE.split())
    alone = translator.translate([SENTENCE, "a dog", "x"], max_length=5)[0]
    assert alone.text == one.text
    (scores,) = translator.score([SENTENCE], ["le chien"])
    assert len(scores) > 1 and all(score < 0 for score in scores)
    both = Translator.load([run, run], device="cpu", precision="fp32")
    assert both.translate(SENTENCE, max_length=5).text == one.text
    begun = translator.translate(SENTENCE, max_length=5, target_prefix="le")
    assert begun.text.startswith("le")
    several = translator.translate(SENTENCE, max_length=5, n_best=3)
    assert len(several.alternatives) == 2
    for options in (("--precision", "bf16"), ("--precision", "int8"), ("--sample",)):
        done = heedful_cli("translate", run, *options, "--max-length", "5", stdin=f"{SENTENCE}\n")
        assert done.returncode == 0 and done.stdout.count("\n") == 1, done.stderr


def test_each_layer_that_attends_is_shown(heedful_cli, run, tmp_path):
    attention = Translator.load(run, device="cpu", precision="fp32").attend(SENTENCE, "le chien")
    assert attention.encoder.shape[0] == attention.decoder.shape[0] == 0
    assert attention.cross.shape[:2] == (2, 1)
    np.testing.assert_allclose(attention.cross.sum(-1), 1.0, atol=1e-6)
    page, picture = tmp_path / "dog.html", tmp_path / "dog.png"
    done = heedful_cli("attend", run, SENTENCE, "--out", page, "--out", picture)
    assert done.returncode == 0, done.stderr
    assert page.stat().st_size > 10_000 and picture.stat().st_size > 1_000


def test_its_size_and_its_cost_are_told(heedful_cli, run):
    done = heedful_cli("info", run)
    assert done.returncode == 0 and "convs2s" in done.stdout, done.stderr


def test_what_it_cannot_do_is_refused_by_name(heedful_cli, run, tmp_path):
    not_exported(run, tmp_path, "`model.encoder` is convs2s")
    refused(
        heedful_cli("translate", run, "--coverage-penalty", "0.2", stdin="x\n"),
        "this decoder has one for each layer and head",
    )
    done = heedful_cli("paper", "figure3", run, "--sentence", SENTENCE, "--out", tmp_path / "x.png")
    refused(done, "but `model.encoder` is convs2s;")
