"""Transformers with other attention by the commands of every other one."""

import numpy as np
import pytest

from heedful.translation.translator import Translator
from tests.support.commands import not_exported, refused, resumes_alike, train_run

SENTENCE = "the big red dog"
BASE = (
    "train.precision=fp32",
    "train.steps=4",
    "train.batch_tokens=256",
    "train.checkpoint_steps=2",
    "train.validate_steps=none",
)
ADDITIVE = (*BASE, "model.attention.score=additive", "model.attention.window=4")


@pytest.fixture(scope="module")
def additive(heedful_cli, text, tmp_path_factory):
    return train_run(heedful_cli, text, tmp_path_factory.mktemp("additive") / "run", *ADDITIVE)


@pytest.mark.soak
@pytest.mark.family("batch_norm")
@pytest.mark.parametrize(
    "mixers",
    [
        ("score=additive", "window=4"),
        pytest.param(
            ("encoder=fastformer", "decoder=fastformer-linear"),
            marks=pytest.mark.family("fastformer"),
        ),
        pytest.param(
            ("encoder=convolution", "window=3"), marks=pytest.mark.family("relative_maps")
        ),
    ],
)
def test_a_resumed_run_has_the_same_bytes(heedful_cli, text, tmp_path, mixers):
    settings = (*BASE, "model.norm_kind=batch", *(f"model.attention.{one}" for one in mixers))
    whole = train_run(heedful_cli, text, tmp_path / "whole", *settings)
    resumes_alike(heedful_cli, text, whole, tmp_path / "again", settings, 2, 4)


def test_it_translates_aligns_and_scores(heedful_cli, additive):
    translator = Translator.load(additive, device="cpu", precision="fp32")
    one = translator.translate(SENTENCE, alignments=True, max_length=5)
    assert one.alignment.source_words == tuple(SENTENCE.split())
    assert translator.translate([SENTENCE, "a dog"], max_length=5)[0].text == one.text
    attention = translator.attend(SENTENCE, "le chien")
    for part in (attention.encoder, attention.decoder, attention.cross):
        np.testing.assert_allclose(part.sum(-1), 1.0, atol=1e-5)
    for precision in ("bf16", "int8"):
        options = ("--precision", precision, "--max-length", "5")
        done = heedful_cli("translate", additive, *options, stdin=f"{SENTENCE}\n")
        assert done.returncode == 0 and done.stdout.count("\n") == 1, done.stderr


def test_no_format_can_express_it(additive, tmp_path):
    not_exported(additive, tmp_path, "`model.attention.")


@pytest.fixture(scope="module")
def pooled(heedful_cli, text, tmp_path_factory):
    """A run without self-attention on either side."""
    mixers = ("encoder=fastformer", "decoder=fastformer-linear")
    settings = (*BASE, "train.steps=2", *(f"model.attention.{mixer}" for mixer in mixers))
    return train_run(heedful_cli, text, tmp_path_factory.mktemp("pooled") / "run", *settings)


@pytest.mark.family("fastformer")
def test_without_self_attention_it_translates_and_shows_the_rest(heedful_cli, pooled, tmp_path):
    for precision in ("bf16", "int8"):
        options = ("--precision", precision, "--max-length", "5")
        done = heedful_cli("translate", pooled, *options, stdin=f"{SENTENCE}\n")
        assert done.returncode == 0 and done.stdout.count("\n") == 1, done.stderr
    page = tmp_path / "dog.html"
    done = heedful_cli("attend", pooled, SENTENCE, "--out", page)
    assert done.returncode == 0 and page.stat().st_size > 10_000, done.stderr
    refused(
        heedful_cli("attend", pooled, SENTENCE, "--out", tmp_path / "x.png", "--kind", "encoder"),
        "must choose attention that",
    )
    figure = heedful_cli(
        "paper", "figure3", pooled, "--sentence", SENTENCE, "--out", tmp_path / "x.png"
    )
    refused(figure, "but `model.attention.encoder` is fastformer;")
    done = heedful_cli("export", pooled, tmp_path / "onnx", "--format", "onnx")
    refused(done, "`model.attention.encoder` is fastformer")
