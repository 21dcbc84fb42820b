"""A recurrent model by the commands of every other one."""

import numpy as np
import pytest

from heedful.analysis.attend import attend
from heedful.errors import SettingError
from heedful.search.settings import SearchOptions
from heedful.translation.translator import Translator
from tests.support.commands import not_exported, refused, resumes_alike, train_arguments, train_run
from tests.support.serving import serving

pytestmark = pytest.mark.family("recurrent")

SETTINGS = (
    "model.encoder=recurrent",
    "model.decoder=recurrent",
    "train.precision=fp32",
    "train.steps=12",
    "train.batch_tokens=256",
    "train.checkpoint_steps=6",
    "train.validate_steps=none",
)
SENTENCE = "the big red dog"


@pytest.fixture(scope="module")
def run(heedful_cli, text, tmp_path_factory):
    out = tmp_path_factory.mktemp("recurrent") / "run"
    return train_run(heedful_cli, text, out, *SETTINGS)


@pytest.mark.soak
def test_a_resumed_run_has_the_same_bytes(heedful_cli, text, run, tmp_path):
    resumes_alike(heedful_cli, text, run, tmp_path / "again", SETTINGS, 6, 12)


def test_it_translates_aligns_and_scores(heedful_cli, run):
    translator = Translator.load(run, device="cpu", precision="fp32")
    one = translator.translate(SENTENCE, alignments=True, max_length=5)
    assert one.alignment.source_words == tuple(SENTENCE.split())
    alone = translator.translate([SENTENCE, "a dog", "x"], max_length=5)[0]
    assert alone.text == one.text
    (scores,) = translator.score([SENTENCE], ["le chien"])
    assert len(scores) > 1 and all(score < 0 for score in scores)
    for precision in ("bf16", "int8"):
        done = heedful_cli(
            "translate", run, "--precision", precision, "--max-length", "5", stdin=f"{SENTENCE}\n"
        )
        assert done.returncode == 0 and done.stdout.count("\n") == 1, done.stderr


def test_a_coverage_penalty_lowers_its_scores(heedful_cli, run, trained):
    translator = Translator.load(run, device="cpu", precision="fp32")
    options = {"max_length": 5, "stop": "when-beam-finished"}
    plain = translator.translate(SENTENCE, **options)
    covered = translator.translate(SENTENCE, coverage_penalty=0.2, **options)
    assert covered.score < plain.score
    given = ("--max-length", "5", "--stop", "when-beam-finished", "--coverage-penalty", "0.2")
    done = heedful_cli(
        "translate", run, "--precision", "fp32", *given, "--scores", stdin=f"{SENTENCE}\n"
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split("\t")[0]) == pytest.approx(covered.score, abs=1e-4)
    for command, told in (
        (("translate", trained, "--coverage-penalty", "0.2"), "this decoder has one for each"),
        (("translate", run, run, "--coverage-penalty", "0.2"), "in each of its 2 models"),
        (("translate", run, "--coverage-penalty", "0.2", "--beam", "1"), "greedy search"),
        (("translate", run, "--coverage-penalty", "0.2", "--sample"), "sampling"),
        (
            ("translate", run, "--coverage-penalty", "0.2", "--engine", "ctranslate2"),
            "--coverage-penalty",
        ),
    ):
        refused(heedful_cli(*command, stdin="x\n"), told)


def test_a_server_takes_it_too(zygote, run):
    translator = Translator.load(run, device="cpu", precision="fp32")
    covered = translator.translate(SENTENCE, coverage_penalty=0.2)
    with serving(zygote, run, "--precision", "fp32") as server:
        body = {"q": SENTENCE, "source": "en", "target": "fr", "split": False}
        (model,) = server.client.get("/v1/models").json()["models"]
        assert model["coverage_penalty"] == 0.0

        def ask(path="/v1/translate", **more):
            return server.client.post(path, json={**body, **more})

        (one,) = ask(coverage_penalty=0.2).json()["translations"]
        assert one["score"] == pytest.approx(covered.score, abs=1e-4)
        for path in ("/v1/translate", "/v1/stream"):
            refusal = ask(path, coverage_penalty=0.2, beam=1)
            assert refusal.status_code == 400 and "greedy search" in refusal.text
            assert ask(path, coverage_penalty=11).status_code == 400
        assert ask(coverage_penalty=0, beam=1).status_code == 200


def test_the_shown_score_of_a_given_target_has_the_penalty(run):
    translator = Translator.load(run, device="cpu", precision="fp32")
    plain = attend(translator, SENTENCE, target="le chien")
    covered = attend(
        translator, SENTENCE, target="le chien", options=SearchOptions(coverage_penalty=0.2)
    )
    summed = translator.attend(SENTENCE, "le chien").cross[0, 0].sum(0)
    expected = plain.score + 0.2 * np.log(np.minimum(summed, 1)).sum()
    assert covered.score == pytest.approx(expected, abs=1e-5)


def test_its_attention_is_the_decoder_s_alone(run):
    translator = Translator.load(run, device="cpu", precision="fp32")
    attention = translator.attend(SENTENCE, "le chien")
    assert attention.encoder.shape[0] == attention.decoder.shape[0] == 0
    assert attention.cross.shape[:2] == (1, 1)
    np.testing.assert_allclose(attention.cross.sum(-1), 1.0, atol=1e-6)
    assert attention.plot() is not None
    with pytest.raises(SettingError, match="the model has no encoder attention"):
        attention.plot("encoder")
    record = attend(translator, SENTENCE)
    assert record.encoder is None and record.decoder is None


def test_pictures_show_it(heedful_cli, run, tmp_path):
    page, picture = tmp_path / "dog.html", tmp_path / "dog.png"
    done = heedful_cli("attend", run, SENTENCE, "--out", page, "--out", picture)
    assert done.returncode == 0, done.stderr
    assert page.stat().st_size > 10_000 and picture.stat().st_size > 1_000
    refused(
        heedful_cli("attend", run, SENTENCE, "--out", picture, "--kind", "encoder"),
        "must choose attention that",
        "(cross), but they choose encoder",
    )


@pytest.fixture(scope="module")
def blind(heedful_cli, text, tmp_path_factory):
    """A run without attention."""
    out = tmp_path_factory.mktemp("blind") / "run"
    settings = ("model.recurrent.score=none", "train.steps=2", "train.checkpoint_steps=2")
    done = heedful_cli(*train_arguments(text, out, *SETTINGS, *settings))
    assert done.returncode == 0, done.stderr
    return out


def test_a_model_without_attention_translates_and_scores(heedful_cli, blind, text):
    done = heedful_cli("translate", blind, "--max-length", "5", stdin=f"{SENTENCE}\n")
    assert done.returncode == 0 and done.stdout.count("\n") == 1, done.stderr
    pair = [blind.parent / f"pair.{language}" for language in ("en", "fr")]
    for path, line in zip(pair, (SENTENCE, "le chien"), strict=True):
        path.write_text(f"{line}\n")
    given = ("--source", pair[0], "--target", pair[1])
    assert heedful_cli("score", blind, *given).returncode == 0
    has_none = "the decoder of this run has none (`model.recurrent.score` is none)"
    refused(heedful_cli("score", blind, *given, "--alignments"), has_none)
    refused(heedful_cli("translate", blind, "--alignments", stdin="x\n"), has_none)
    refused(
        heedful_cli("translate", blind, "--coverage-penalty", "0.2", stdin="x\n"),
        "this decoder has no attention",
    )


def test_figures_of_self_attention_need_a_transformer_s_encoder(heedful_cli, run, tmp_path):
    for name in ("figure3", "figure4", "figure5"):
        done = heedful_cli("paper", name, run, "--sentence", SENTENCE, "--out", tmp_path / "x.png")
        refused(done, "but `model.encoder` is recurrent;")


def test_no_format_can_express_it(run, tmp_path):
    not_exported(run, tmp_path, "`model.encoder` is recurrent")
