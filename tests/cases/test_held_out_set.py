"""A held-out set that is empty, too long or one line ends a training at its first validation."""

import json
import math

import pytest

from tests.support.commands import refused, train_arguments, write_text

# name: pairs held out, and what is said or refused
SETS = {
    "one": ([("the dog", "le chien")], "validation  1 pairs\n"),
    "half": (
        [("the dog", "le chien"), ("", "le chat"), ("the cat", " ")],
        "1 pairs, 2 with an empty side left out",
    ),
    "long": ([("the big red dog " * 150, "le gros chien rouge " * 150)], "1 pairs"),
}
EMPTY = {"no line": [], "empty lines": [("", "")] * 3, "crossed": [("a", ""), ("", "b")]}


@pytest.fixture(scope="module")
def text(grammar, tmp_path_factory):
    """Training text."""
    folder = tmp_path_factory.mktemp("text")
    write_text(folder, grammar[0][:400], "train")
    return folder


def command(text, folder, *more):
    """The arguments of a training of a few steps, validated once."""
    settings = ("data.vocabulary_size=300", "train.steps=2", "train.validate_steps=2")
    arguments = train_arguments(text, folder / "run", *settings, validate=False)
    held_out = ["--valid-source", folder / "valid.en", "--valid-target", folder / "valid.fr"]
    return [*arguments, *held_out, *more]


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_set_is_refused_before_anything_is_made(heedful_cli, text, tmp_path, name):
    write_text(tmp_path, EMPTY[name], "valid")
    for more in ((), ("--dry-run",)):
        told = "are empty" if name == "no line" else "a pair with text on both sides"
        refused(heedful_cli(*command(text, tmp_path, *more)), told)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", SETS)
def test_any_other_set_is_scored_and_what_is_left_out_is_counted(heedful_cli, text, tmp_path, name):
    pairs, said = SETS[name]
    write_text(tmp_path, pairs, "valid")
    dry = heedful_cli(*command(text, tmp_path, "--dry-run"))
    assert dry.returncode == 0 and said in dry.stdout
    done = heedful_cli(*command(text, tmp_path))
    assert done.returncode == 0, done.stderr
    assert ("left out" in done.stderr) == (name == "half")
    assert max(map(len, done.stderr.splitlines())) < 400
    lines = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    (validation,) = [line for line in lines if "valid_loss" in line]
    assert math.isfinite(validation["valid_perplexity"]) and 0 <= validation["bleu"] <= 100
    # the log has the whole sentence
    assert validation["samples"][0]["source"] == pairs[0][0]
