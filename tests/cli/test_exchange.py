"""`heedful import` and `heedful export`, and that an imported run is a run like any other."""

import json

import pytest

from tests.support.marian import TAGS, make, text


@pytest.fixture(scope="module")
def imported(heedful_cli, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exchange")
    make(folder / "theirs", tags=TAGS)
    done = heedful_cli("import", folder / "theirs", "--from", "marian", "--out", folder / "run")
    assert done.returncode == 0, done.stderr
    assert "12 of 12 translations equal" in done.stdout
    for side, name in enumerate(("source", "target")):
        tag = "" if side else f"{TAGS[0]} "
        lines = "".join(f"{tag}{pair[side]}\n" for pair in text()[:300])
        (folder / name).write_text(lines, encoding="utf-8")
    return folder


def test_an_imported_run_translates_scores_and_is_described(heedful_cli, imported):
    lines = f"{TAGS[0]} the dog\n\n{TAGS[1]} the cats\n"
    found = heedful_cli("translate", imported / "run", stdin=lines).stdout.split("\n")
    assert found[0] and not found[1] and found[2]
    scored = heedful_cli(
        "score", imported / "run", "--source", imported / "source", "--target", imported / "target"
    )
    assert scored.returncode == 0, scored.stderr
    info = json.loads(heedful_cli("info", imported / "run", "--json").stdout)
    assert info["vocabulary"]["kind"] == "imported-sentencepiece"
    assert info["vocabulary"]["tags"] == list(TAGS)
    assert info["weights"]["step-0"]["reason"] == "imported from marian"


def test_it_is_trained_on_with_its_own_search_and_goes_back(heedful_cli, imported):
    files = ("--source", imported / "source", "--target", imported / "target")
    settings = ["steps=4", "batch_tokens=500", "precision=fp32", "warmup=2"]
    options = [word for one in settings for word in ("--set", f"train.{one}")]
    done = heedful_cli(
        "train", "tiny", "--finetune-from", imported / "run", *files, *options,
        "--out", imported / "tuned",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    config = json.loads((imported / "tuned" / "config.json").read_text())["settings"]
    assert config["search"]["length_limit_policy"] == "end"
    assert config["search"]["length_penalty"] == "power:1"
    back = imported / "back"
    done = heedful_cli("export", imported / "tuned", back, "--format", "marian")
    assert done.returncode == 0, done.stderr
    assert "12 of 12 translations equal" in done.stdout
    before, after = (
        json.loads((imported / name / "vocab.json").read_text()) for name in ("theirs", "back")
    )
    assert before == after


def test_other_translations_end_in_1_and_the_folder_stays(heedful_cli, imported, tmp_path):
    words = ("--format", "ctranslate2", "--quantization", "int8")
    done = heedful_cli("export", imported / "run", tmp_path / "small", *words)
    assert done.returncode == 1, done.stdout
    assert "translations equal" in done.stdout
    assert done.stderr.splitlines()[-1].startswith("heedful: at least 95%")
    assert (tmp_path / "small" / "model.bin").is_file()
    accepted = (*words, "--accept-differences")
    done = heedful_cli("export", imported / "run", tmp_path / "other", *accepted)
    assert done.returncode == 0, done.stderr


def test_what_cannot_be_is_one_paragraph(heedful_cli, imported):
    for words in (
        ("import", imported / "run", "--from", "marian", "--out", imported / "new"),
        ("import", imported / "theirs", "--from", "other", "--out", imported / "new"),
        ("import", imported / "theirs", "--from", "marian", "--out", imported / "run"),
        ("export", imported / "theirs", imported / "new", "--format", "marian"),
    ):
        done = heedful_cli(*words)
        assert done.returncode == 2
        assert done.stderr.startswith("heedful: ")
        assert done.stderr.count("\n") == 1
        assert not (imported / "new").exists()
