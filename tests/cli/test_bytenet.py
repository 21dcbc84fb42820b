"""ByteNet by the commands of every other model: characters and subwords, and what it cannot do."""

import pytest

from heedful.translation.translator import Translator
from tests.support.commands import not_exported, refused, resumes_alike, train_arguments, train_run
from tests.support.serving import serving

pytestmark = pytest.mark.family("bytenet")

SETTINGS = (
    "model.encoder=bytenet",
    "model.decoder=bytenet",
    "train.precision=fp32",
    "train.steps=12",
    "train.batch_tokens=256",
    "train.checkpoint_steps=6",
    "train.validate_steps=none",
)
SENTENCE = "the big red dog"


@pytest.fixture(scope="module")
def run(heedful_cli, text, tmp_path_factory):
    out = tmp_path_factory.mktemp("bytenet") / "run"
    return train_run(heedful_cli, text, out, *SETTINGS)


@pytest.mark.soak
def test_a_resumed_run_has_the_same_bytes(heedful_cli, text, run, tmp_path):
    resumes_alike(heedful_cli, text, run, tmp_path / "again", SETTINGS, 6, 12)


def test_it_translates_and_scores(heedful_cli, run):
    translator = Translator.load(run, device="cpu", precision="fp32")
    one = translator.translate(SENTENCE, max_length=5)
    together = translator.translate([SENTENCE, "a dog", "x"], max_length=5)
    assert together[0].text == one.text
    assert together[0].score == pytest.approx(one.score, abs=1e-4)
    (scores,) = translator.score([SENTENCE], ["le chien"])
    assert len(scores) > 1 and all(score < 0 for score in scores)
    for precision in ("bf16", "int8"):
        done = heedful_cli(
            "translate", run, "--precision", precision, "--max-length", "5", stdin=f"{SENTENCE}\n"
        )
        assert done.returncode == 0 and done.stdout.count("\n") == 1, done.stderr


def test_it_reads_and_writes_characters(heedful_cli, text, tmp_path):
    out = tmp_path / "run"
    characters = ("data.subwords=character", "data.shared_vocabulary=false")
    untied = ("model.tie_embeddings=none", "train.steps=2", "train.checkpoint_steps=2")
    done = heedful_cli(*train_arguments(text, out, *SETTINGS, *characters, *untied))
    assert done.returncode == 0, done.stderr
    done = heedful_cli(
        "translate", out, "--beam", "12", "--max-length", "60", stdin=f"{SENTENCE}\n"
    )
    assert done.returncode == 0 and done.stdout.count("\n") == 1, done.stderr


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("translate", "--alignments"), "has none (`model.decoder` is bytenet)"),
        (("translate", "--replace-unknown"), "has none (`model.decoder` is bytenet)"),
        (("translate", "--coverage-penalty", "0.2"), "this decoder has no attention"),
        (("attend", "a dog", "--out", "x.html"), "has none (`model.decoder` is bytenet)"),
        (("paper", "figure3", "--out", "x.png"), "but `model.encoder` is bytenet;"),
    ],
    ids=str,
)
def test_what_needs_attention_is_refused(heedful_cli, run, tmp_path, command, told):
    name, *rest = command
    first = [name, rest.pop(0)] if name == "paper" else [name]
    refused(heedful_cli(*first, run, *rest, stdin=f"{SENTENCE}\n", cwd=tmp_path), told)
    assert not [*tmp_path.iterdir()]


def test_an_ensemble_with_a_model_that_attends_is_not_aligned(heedful_cli, text, run, tmp_path):
    """The first model's weights cannot be averaged with those of a model that has none."""
    other = tmp_path / "run"
    settings = ("train.precision=fp32", "train.steps=2", "train.checkpoint_steps=2")
    done = heedful_cli(*train_arguments(text, other, *settings, validate=False))
    assert done.returncode == 0, done.stderr
    both = ("translate", other, run, "--max-length", "5")
    done = heedful_cli(*both, stdin=f"{SENTENCE}\n")
    assert done.returncode == 0 and done.stdout.count("\n") == 1, done.stderr
    refused(heedful_cli(*both, "--alignments", stdin=f"{SENTENCE}\n"), "but they differ")


def test_a_server_translates_and_refuses_attention(zygote, run):
    translator = Translator.load(run, device="cpu", precision="fp32")
    with serving(zygote, run, "--precision", "fp32") as server:
        body = {"q": SENTENCE, "source": "en", "target": "fr", "split": False}
        (model,) = server.client.get("/v1/models").json()["models"]
        assert (model["layers"], model["heads"]) == (0, 0) and "coverage_penalty" not in model

        def ask(**more):
            return server.client.post("/v1/translate", json={**body, **more})

        (one,) = ask().json()["translations"]
        assert one["text"] == translator.translate(SENTENCE).text
        for wish in ({"alignments": True}, {"attention": True}):
            refusal = ask(**wish)
            assert refusal.status_code == 400, refusal.text
            assert "`model.decoder` is bytenet" in refusal.text
        refusal = ask(coverage_penalty=0.2)
        assert refusal.status_code == 400 and "this decoder has no attention" in refusal.text


def test_no_format_can_express_it(run, tmp_path):
    not_exported(run, tmp_path, "`model.decoder` is bytenet")


def test_its_cost_is_counted(heedful_cli, run):
    done = heedful_cli("info", run)
    assert done.returncode == 0 and "bytenet" in done.stdout, done.stderr
