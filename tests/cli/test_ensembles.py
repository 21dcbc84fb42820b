"""Three families over one tokenizer as one translator: command line, Python and server."""

import math
import shutil

import pytest

from heedful.errors import RunFolderError
from heedful.translation.translator import Translator
from tests.support.commands import refused, train_arguments
from tests.support.serving import serving

pytestmark = pytest.mark.family("bytenet", "convs2s", "recurrent")
FEW = (
    "train.precision=fp32",
    "train.steps=6",
    "train.batch_tokens=256",
    "train.validate_steps=none",
    "search.max_length=input+3",
)
FAMILIES = {
    "recurrent": (
        "model.encoder=recurrent",
        "model.decoder=recurrent",
        "model.recurrent.hidden_size=24",
        "model.recurrent.readout_size=24",
        "model.tie_embeddings=none",
    ),
    "convs2s": (
        "model.encoder=convs2s",
        "model.decoder=convs2s",
        "model.positions=learned",
        "model.convs2s.encoder_layers=2x(16,3)",
        "model.convs2s.decoder_layers=2x(16,3)",
    ),
    "bytenet": ("model.encoder=bytenet", "model.decoder=bytenet", "model.encoder_layers=2"),
}
LINES = ["the big red dog", "a cat sleeps .", "", "the man sees the small house"]


@pytest.fixture(scope="module")
def runs(heedful_cli, text, trained, tmp_path_factory):
    """A Transformer, an LSTM, ConvS2S and ByteNet, the last three on the subwords of the first."""
    found = {"transformer": trained}
    for name, settings in FAMILIES.items():
        found[name] = tmp_path_factory.mktemp(name) / name
        arguments = train_arguments(text, found[name], *settings, *FEW, validate=False)
        done = heedful_cli(*arguments, "--tokenizer", trained)
        assert done.returncode == 0, done.stderr
    return found


def three(runs):
    return [runs[name] for name in ("transformer", "recurrent", "convs2s")]


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_families_translate_together_in_every_precision(runs, precision):
    exact = Translator.load(three(runs), device="cpu", precision="fp32").translate(LINES)
    rounded = Translator.load(three(runs), device="cpu", precision=precision).translate(LINES)
    for one, other in zip(rounded, exact, strict=True):
        assert one.score == pytest.approx(other.score, rel=0.3)  # of another translation, too


def test_command_line_python_and_server_give_the_same_answers(zygote, heedful_cli, runs):
    paths = three(runs)
    translator = Translator.load(paths, device="cpu", precision="fp32")
    answers = translator.translate(LINES, n_best=2)
    done = heedful_cli(
        *("translate", *paths, "--precision", "fp32", "--n-best", 2),
        stdin="".join(f"{line}\n" for line in LINES),
    )
    assert done.returncode == 0, done.stderr
    printed = [line.split(" ||| ")[1:] for line in done.stdout.splitlines()]
    expected = [other for each in answers for other in (each, *each.alternatives)]
    assert [text for text, _ in printed] == [each.text for each in expected]
    for (_, score), each in zip(printed, expected, strict=True):
        assert float(score) == pytest.approx(each.score, abs=1e-4)
    # the ensemble is none of its members
    scores = [
        Translator.load(path, device="cpu", precision="fp32").translate(LINES[0]).score
        for path in paths
    ]
    assert all(abs(score - answers[0].score) > 1e-4 for score in scores)

    with serving(zygote, "+".join(map(str, paths)), "--precision", "fp32") as server:
        (model,) = server.client.get("/v1/models").json()["models"]
        assert model["name"] == "+".join(path.name for path in paths)
        assert not model["alignments"] and not model["attention"]
        assert model["parameters"] > Translator.load(paths[0]).run.vocabularies[0]
        body = {"source": "en", "target": "fr", "split": False}
        for line, answer in zip(LINES, answers, strict=True):
            if not line:
                continue
            asked = {**body, "q": line, "n_best": 2}
            reply = server.client.post("/v1/translate", json=asked)
            assert reply.status_code == 200, reply.text
            (one,) = reply.json()["translations"]
            assert one["text"] == answer.text
            assert one["score"] == pytest.approx(answer.score, abs=1e-4)
        for wish, told in (
            ({"alignments": True}, "is an ensemble"),
            ({"attention": True}, "is an ensemble"),
            ({"coverage_penalty": 0.2}, "in each of its 3 models"),
        ):
            refusal = server.client.post("/v1/translate", json={**body, "q": "dog", **wish})
            assert refusal.status_code == 400 and told in refusal.text, refusal.text
        plain = server.client.post("/translate", json={**body, "q": LINES[0], "format": "text"})
        assert plain.status_code == 200 and plain.json()["translatedText"]


def test_scores_of_given_pairs_are_means_of_probabilities(runs):
    paths = [*runs.values()]
    pairs = (["the big red dog"], ["le grand chien rouge"])
    together, *each = [
        Translator.load(some, device="cpu", precision="fp32").score(*pairs)[0]
        for some in (paths, *paths)
    ]
    for mean, *own in zip(together, *each, strict=True):
        expected = sum(map(math.exp, own)) / len(own)
        assert math.exp(mean) == pytest.approx(expected, rel=1e-4)


def test_alignments_need_equal_attention_and_are_refused_before_the_first_line(heedful_cli, runs):
    both = ("translate", runs["transformer"], runs["recurrent"], "--alignments")
    done = heedful_cli(*both, stdin="the dog\n")
    refused(done, "but they differ", "align with one run alone")
    assert done.stdout == ""
    # a run beside itself has equal attention
    same = ("translate", runs["recurrent"], runs["recurrent"], "--alignments", "--max-length", 5)
    done = heedful_cli(*same, stdin="the dog\n")
    assert done.returncode == 0, done.stderr


def test_weights_of_the_other_direction_are_refused(heedful_cli, text, runs, tmp_path):
    reverse, mixed = tmp_path / "reverse", tmp_path / "mixed"
    command = train_arguments(text, reverse, *FEW, "train.steps=1", validate=False)
    command[3], command[5] = command[5], command[3]  # --source and --target
    done = heedful_cli(*command, "--tokenizer", runs["transformer"])
    assert done.returncode == 0, done.stderr
    told = f"translates en to fr, and {reverse} translates fr to en"
    pair = runs["transformer"], reverse
    refused(heedful_cli("translate", *pair, stdin="a\n"), "the same direction", told)
    refused(heedful_cli("serve", "+".join(map(str, pair)), "--port", 0), told)
    shutil.copytree(runs["transformer"], mixed)
    shutil.rmtree(mixed / "checkpoints")
    shutil.copytree(reverse / "checkpoints", mixed / "checkpoints")
    texts = ("--source", text / "valid.en", "--target", text / "valid.fr")
    last = ("--weights", "last")
    for words in (("translate", *last), ("average",), ("score", *last, *texts)):
        done = heedful_cli(*words, mixed)
        refused(done, "of their training, fr to en,", f"{mixed / 'config.json'} says en to fr")
        assert done.stdout == ""
    assert not (mixed / "average").exists()


def test_other_subwords_are_refused(zygote, heedful_cli, text, runs, tmp_path):
    other = tmp_path / "other"
    settings = (*FEW, "data.vocabulary_size=300", "train.steps=1")
    done = heedful_cli(*train_arguments(text, other, *settings, validate=False))
    assert done.returncode == 0, done.stderr
    told = "differ in their subwords"
    refused(heedful_cli("translate", runs["convs2s"], other, stdin="a\n"), told)
    refused(heedful_cli("serve", f"{runs['convs2s']}+{other}", "--port", 0), told)
    with pytest.raises(RunFolderError, match=told):
        Translator.load([runs["convs2s"], other])
