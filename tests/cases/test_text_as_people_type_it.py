"""A model that learned from clean text alone fails at capitals, typing errors, emoji and tags."""

import pytest

from heedful.config.load import load_config, to_toml
from heedful.config.recipes import recipe, recipe_names
from heedful.errors import SettingError
from heedful.preparation.find_training_data import find_text
from heedful.tokenization.tokenizer import UNKNOWN
from tests.support.commands import resumes_alike, train_run, write_text

SHARES = "capitals:0.1 title:0.1 typos:0.1 punctuation:0.1 symbols:0.1 tags:0.1"


@pytest.fixture(scope="module")
def text(grammar, tmp_path_factory):
    """A small text in lower case, with held-out pairs."""
    folder = tmp_path_factory.mktemp("text")
    pairs, held_out = grammar
    write_text(folder, pairs, "train")
    write_text(folder, held_out, "valid")
    return folder


def test_what_training_adds_has_its_places_in_the_vocabulary(text):
    files = {"source": text / "train.en", "target": text / "train.fr"}
    found = find_text(**files)
    for augment, known in (("", False), (SHARES, True)):
        settings = ["data.vocabulary_size=600", f"data.augment={augment}"]
        tokenizer = found.learn(found.configure(load_config("tiny", settings)))
        for line in ("THE DOG", "The Dog", "the dog 🎉", "{{dog}}", "<b>the dog</b>"):
            assert (UNKNOWN not in tokenizer.encode_source([line])[0]) == known


def test_a_run_that_was_stopped_goes_on_with_the_same_bytes(heedful_cli, text, tmp_path):
    settings = (f"data.augment={SHARES}", "train.validate_steps=none")
    train_run(heedful_cli, text, tmp_path / "whole", *settings)
    places = tmp_path / "whole", tmp_path / "again"
    resumes_alike(heedful_cli, text, *places, settings, steps=16, last=24)
    plain = train_run(heedful_cli, text, tmp_path / "plain", "train.validate_steps=none")
    weights = "checkpoints/step-00000024/model.safetensors"
    assert (plain / weights).read_bytes() != (places[0] / weights).read_bytes()


def test_prepared_text_is_changed_too(heedful_cli, text, tmp_path):
    files = ("--source", text / "train.en", "--target", text / "train.fr")
    augment = ("--set", "data.vocabulary_size=600", "--set", "data.augment=symbols:1")
    prepared = tmp_path / "prepared"
    done = heedful_cli("data", "prepare", "tiny", *files, *augment, "--out", prepared)
    assert done.returncode == 0, done.stderr
    quick = ("--set", "train.steps=1", "--set", "train.validate_steps=none")
    run = tmp_path / "run"
    done = heedful_cli("train", "tiny", "--data", prepared, *quick, "--out", run)
    assert done.returncode == 0, done.stderr
    shown = heedful_cli("data", "show", run, "--source", "the dog", "--target", "le chien")
    assert shown.returncode == 0 and "changed source" in shown.stdout
    assert '"augment": "symbols:1"' in (run / "epoch" / "0" / "meta.json").read_text("utf-8")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("shout:0.1", "must name augmentations"),
        ("capitals", "must be NAME:SHARE"),
        ("capitals:0.1 capitals:0.2", "must be NAME:SHARE"),
        ("capitals:-0.1", "must be NAME:SHARE"),
        ("capitals:0.6 typos:0.6", "a sum of at most 1"),
    ],
)
def test_shares_that_mean_nothing_are_refused(value, words):
    with pytest.raises(SettingError, match=f"`data.augment` {words}|{words}"):
        load_config("tiny", [f"data.augment={value}"])


def test_the_setting_is_printed_and_off_in_every_recipe():
    assert all(recipe(name).data.augment == "" for name in recipe_names())
    printed = to_toml(load_config("small", ["data.augment=capitals:0.05"]))
    assert 'augment = "capitals:0.05"' in printed
