"""Training data: sampled subwords, several corpora, several directions."""

import json

import pytest

from heedful.tokenization.tokenizer import Tokenizer

SETTINGS = (
    "data.vocabulary_size=400",
    "train.batch_tokens=1024",
    "train.precision=fp32",
    "train.checkpoint_steps=100",
    "train.checkpoint_minutes=none",
)


def train(heedful_cli, out, *arguments, steps):
    chosen = [f"train.steps={steps}", *SETTINGS]
    settings = [part for setting in chosen for part in ("--set", setting)]
    return heedful_cli("train", "tiny", *settings, *arguments, "--out", out)


def files(text):
    return ["--source", text / "train.en", "--target", text / "train.fr"]


def weights(run, step):
    folder = run / "checkpoints" / f"step-{step:08d}"
    return [(folder / f"{name}.safetensors").read_bytes() for name in ("model", "training")]


def test_a_run_with_sampled_subwords_is_resumed_to_the_bit(heedful_cli, text, tmp_path):
    whole, parted, plain = tmp_path / "whole", tmp_path / "parted", tmp_path / "plain"
    for name in ("train.en", "train.fr"):  # few lines, for several epochs in few steps
        lines = (text / name).read_text(encoding="utf-8").splitlines(keepends=True)
        (tmp_path / name).write_text("".join(lines[:120]), encoding="utf-8")
    few = ("--set", "data.vocabulary_size=150")
    usual = (*files(tmp_path), *few)
    sampled = (*usual, "--set", "data.subword_sampling=0.2")
    assert train(heedful_cli, whole, *sampled, steps=10).returncode == 0
    first = train(heedful_cli, parted, *sampled, steps=6)
    assert first.returncode == 0, first.stderr
    state = json.loads((parted / "checkpoints" / "step-00000006" / "state.json").read_text())
    assert state["counters"]["epoch"] >= 1 and state["counters"]["position"] >= 1
    second = train(heedful_cli, parted, *sampled, "--resume", steps=10)
    assert second.returncode == 0, second.stderr
    assert weights(parted, 10) == weights(whole, 10)
    assert train(heedful_cli, plain, *usual, steps=10).returncode == 0
    assert weights(plain, 10) != weights(whole, 10)
    epoch = json.loads((whole / "epoch" / "0" / "meta.json").read_text())
    assert epoch["made_from"]["epoch"] >= 2


@pytest.fixture
def described(text, tmp_path):
    def write(weight=""):
        path = tmp_path / "corpora.toml"
        path.write_text(
            "".join(
                f'[{name}]\nsource = "{text}/{source}"\ntarget = "{text}/{target}"\n'
                f'tag = "{tag}"\n{weight}\n'
                for name, source, target, tag in (
                    ("there", "train.en", "train.fr", "fr"),
                    ("back", "valid.fr", "valid.en", "en"),
                )
            )
        )
        return path

    return write


def test_one_model_learns_several_directions_and_goes_where_it_is_told(
    heedful_cli, described, tmp_path
):
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    corpora = ("--corpora", described("weight = 1"))
    done = train(heedful_cli, whole, *corpora, steps=14)
    assert done.returncode == 0, done.stderr
    assert "there: 1,500 pairs kept" in done.stderr
    assert "back: 40 pairs kept" in done.stderr
    assert Tokenizer.load(whole).tags == (">>en<<", ">>fr<<")
    assert train(heedful_cli, parted, *corpora, steps=5).returncode == 0
    assert train(heedful_cli, parted, *corpora, "--resume", steps=14).returncode == 0
    assert weights(parted, 14) == weights(whole, 14)
    described("weight = 2")
    other = train(heedful_cli, parted, *corpora, "--resume", steps=20)
    assert other.returncode == 2
    assert "with its original text" in other.stderr

    told = heedful_cli(
        "translate", whole, "--target-language", "fr", "--scores", stdin="the dog\n\n"
    )
    tagged = heedful_cli("translate", whole, "--scores", stdin=">>fr<< the dog\n\n")
    back = heedful_cli(
        "translate", whole, "--target-language", "en", "--scores", stdin="the dog\n\n"
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout == tagged.stdout != back.stdout
    assert told.stdout.splitlines()[1] == "0.000000\t"
    spaced = heedful_cli(
        "translate", whole, "--target-language", "fr", "--scores", stdin=" \tthe  dog \n  \n"
    )
    score, words = told.stdout.splitlines()[0].split("\t")
    assert spaced.stdout == f"{score}\t{words}\n0.000000\t\n"
    spaced = heedful_cli("translate", whole, "--target-language", "fr", stdin=" \tthe  dog \n  \n")
    assert spaced.stdout == f" \t{words} \n  \n"
    named = heedful_cli("translate", whole, "--target-language", "fr", stdin="the dog\n")
    either = heedful_cli("translate", whole, "--to-language", "fr", stdin="the dog\n")
    assert (either.stdout, either.stderr) == (named.stdout, named.stderr)
    code = (
        f"import heedful; heedful.Translator.load({str(whole)!r}).translate('a', to_language='fr')"
    )
    refused = heedful_cli("-c", code)
    assert "for a model that reads a tag before each text (" in refused.stderr
    assert "begin the text with a tag." in refused.stderr
    unknown = heedful_cli("translate", whole, "--target-language", "xx", stdin="the dog\n")
    assert unknown.returncode == 2
    assert (
        "must be a language for which this model has a tag (>>en<<, >>fr<<), but is xx"
        in unknown.stderr
    )
    shown = heedful_cli("data", "show", whole, "--corpus", "there", "--lines", 1)
    assert ">>fr<<" in shown.stdout
    missing = heedful_cli("data", "show", whole, "--corpus", "nowhere")
    assert missing.returncode == 2
    assert "which has only back, there" in missing.stderr


def test_several_corpora_are_prepared_ahead_and_train_the_same(heedful_cli, described, tmp_path):
    raw, run = tmp_path / "raw", tmp_path / "run"
    corpora = ("--corpora", described())
    done = heedful_cli(
        "data", "prepare", "tiny", *corpora, "--out", tmp_path / "ahead", "--set", SETTINGS[0]
    )
    assert done.returncode == 0, done.stderr
    assert train(heedful_cli, raw, *corpora, steps=3).returncode == 0
    prepared = train(heedful_cli, run, "--data", tmp_path / "ahead", steps=3)
    assert prepared.returncode == 0, prepared.stderr
    assert weights(raw, 3) == weights(run, 3)


def test_the_least_risk_is_one_of_the_samples(heedful_cli, trained):
    drawn = ("--sample", "--seed", 3, "--n-best", 6, "--format", "jsonl")
    samples = json.loads(heedful_cli("translate", trained, *drawn, stdin="the dog\n").stdout)
    texts = {samples["text"], *(other["text"] for other in samples["alternatives"])}
    chosen = heedful_cli(
        "translate", trained, "--mbr", 6, "--seed", 3, "--scores", stdin="the dog\n"
    )
    assert chosen.returncode == 0, chosen.stderr
    score, line = chosen.stdout.rstrip("\n").split("\t")
    assert line in texts
    assert 0 < float(score) <= 100
    refused = heedful_cli("translate", trained, "--mbr", 2, "--n-best", 3, stdin="x\n")
    assert refused.returncode == 2
    assert "must be at least --n-best" in refused.stderr


def test_an_ensemble_of_a_run_with_itself_aligns_as_the_run_does(heedful_cli, trained):
    alone, twice = (
        heedful_cli("translate", *runs, "--alignments", stdin="the dog\na red house\n")
        for runs in ((trained,), (trained, trained))
    )
    assert twice.returncode == 0, twice.stderr
    assert twice.stdout == alone.stdout
