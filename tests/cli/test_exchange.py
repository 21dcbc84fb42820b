"""`heedful import` and `heedful export`, and that an imported run is a run like any other."""

import json

import pytest
from huggingface_hub import ModelCard

from tests.support.marian import TAGS, make, text
from tests.support.t5 import PREFIX
from tests.support.t5 import make as make_t5


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
    card = ModelCard.load(back / "README.md")
    assert (card.data.library_name, card.data.pipeline_tag) == ("transformers", "translation")
    assert "fine-tuned from the run `run`" in card.text
    assert "Not measured." in card.text


def test_a_card_has_what_the_command_says_of_it(heedful_cli, imported, tmp_path):
    scores, out = tmp_path / "newstest.json", tmp_path / "out"
    scores.write_text('{"bleu": {"score": 12.5, "signature": "nrefs:1"}}')
    export = ("export", imported / "run", out, "--format", "marian")
    for option, wrong, word in (
        ("--license", "a\nb", "--license must"),
        ("--dataset", "a/b/c", "--dataset must"),
        ("--scores", tmp_path / "missing.json", "--scores must"),
    ):
        done = heedful_cli(*export, option, wrong)
        assert done.returncode == 2, done.stderr
        assert word in " ".join(done.stderr.split())
        assert not out.exists()
    done = heedful_cli(*export, "--license", "mit", "--dataset", "wmt/wmt14", "--scores", scores)
    assert done.returncode == 0, done.stderr
    data = ModelCard.load(out / "README.md").data
    assert (data.license, data.datasets) == ("mit", ["wmt/wmt14"])
    assert data.eval_results[0].metric_value == 12.5
    again = heedful_cli("import", out, "--from", "marian", "--out", tmp_path / "again")
    assert again.returncode == 0, again.stderr


def test_other_translations_end_in_1_and_the_folder_stays(heedful_cli, imported, tmp_path):
    words = ("--format", "ctranslate2", "--quantization", "int8")
    done = heedful_cli("export", imported / "run", tmp_path / "small", *words)
    assert done.returncode == 1, done.stdout
    assert "translations equal" in done.stdout
    assert done.stderr.splitlines()[-1].startswith("heedful: both models must give the same")
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


def test_a_task_is_chosen_by_its_name_and_refused_where_there_is_none(
    heedful_cli, imported, tmp_path
):
    make_t5(tmp_path / "theirs")
    command = ("import", tmp_path / "theirs", "--from", "huggingface", "--out", tmp_path / "run")
    done = heedful_cli(*command, "--task", "translation_en_to_de")
    assert done.returncode == 2
    assert "must name a task of the model (summarization, translation_en_to_fr" in done.stderr
    assert not (tmp_path / "run").exists()
    done = heedful_cli(*command, "--task", "translation_en_to_fr")
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "run" / "tokenizer.json").read_text())
    assert record["source_prefix"] == PREFIX
    assert (record["source_language"], record["target_language"]) == ("en", "fr")
    config = json.loads((tmp_path / "run" / "config.json").read_text())["settings"]
    assert (config["search"]["beam"], config["search"]["max_length"]) == (4, "29")
    marian = ("import", imported / "theirs", "--from", "marian", "--out", tmp_path / "no")
    for option in ("--task", "--source-prefix"):
        done = heedful_cli(*marian, option, "translation_en_to_fr")
        assert done.returncode == 2
        assert f"{option} is for models that read a task before each text" in done.stderr
        assert not (tmp_path / "no").exists()
