"""A model with a token for each language: chosen per call, tuned, served."""

import json

import pytest

from tests.support.bart import make
from tests.support.marian import text
from tests.support.serving import serving

PAIRS = text(40)
SENTENCES = [pair[0] for pair in PAIRS[:3]]
LINES = "".join(f"{line}\n" for line in SENTENCES)


@pytest.fixture(scope="module")
def run(heedful_cli, tmp_path_factory):
    folder = tmp_path_factory.mktemp("nllb")
    make(folder / "theirs", "nllb")
    where = ("--from", "huggingface", "--out", folder / "run")
    done = heedful_cli("import", folder / "theirs", *where, "--source-language", "en")
    assert done.returncode == 0, done.stderr
    assert "this run translates from eng_Latn to fra_Latn" in done.stderr
    return folder / "run"


def translated(heedful_cli, run, *options):
    done = heedful_cli("translate", run, *options, stdin=LINES)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_command_chooses_the_languages(heedful_cli, run):
    def scored(*options):
        return translated(heedful_cli, run, "--scores", *options)

    french, german = scored(), scored("--to-language", "de")
    assert french == scored("--to-language", "fra_Latn")
    assert german == scored("--target-language", "deu")
    assert german != french
    backwards = scored("--from-language", "fr", "--to-language", "de")
    assert backwards != german


def test_an_unknown_language_is_refused_in_one_paragraph(heedful_cli, run, trained):
    done = heedful_cli("translate", run, "--to-language", "zz", stdin=LINES)
    assert done.returncode == 2
    assert "--to-language must be a language of this model, but is 'zz'" in done.stderr
    assert "Traceback" not in done.stderr
    done = heedful_cli("translate", trained, "--to-language", "de", stdin=LINES)
    assert done.returncode == 2
    assert "must fit the model's single direction, en to fr" in done.stderr


def test_scores_and_attention_are_of_the_chosen_languages(heedful_cli, run, tmp_path):
    (tmp_path / "a.en").write_text(LINES)
    (tmp_path / "a.fr").write_text("".join(f"{pair[1]}\n" for pair in PAIRS[:3]))
    files = ("--source", tmp_path / "a.en", "--target", tmp_path / "a.fr", "--format", "jsonl")
    french = heedful_cli("score", run, *files).stdout
    german = heedful_cli("score", run, *files, "--to-language", "de").stdout
    assert json.loads(french.splitlines()[0])["tokens"][0] == "fra_Latn"
    assert json.loads(german.splitlines()[0])["tokens"][0] == "deu_Latn"
    shown = heedful_cli("attend", run, SENTENCES[0], "--to-language", "de")
    assert "deu_Latn" in shown.stdout


def test_files_name_the_languages_of_a_fine_tuning(heedful_cli, run, tmp_path):
    def tune(ending, out):
        (tmp_path / "t.en").write_text("".join(f"{pair[0]}\n" for pair in PAIRS))
        (tmp_path / f"t.{ending}").write_text("".join(f"{pair[1]}\n" for pair in PAIRS))
        files = ("--source", tmp_path / "t.en", "--target", tmp_path / f"t.{ending}", "--out", out)
        few = ("--set", "train.steps=2", "--set", "train.precision=fp32")
        return heedful_cli("train", "tiny", *files, "--finetune-from", run, *few)

    done = tune("de", tmp_path / "tuned")
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "tuned" / "tokenizer.json").read_text())
    assert (record["source_language"], record["target_language"]) == ("eng_Latn", "deu_Latn")
    assert translated(heedful_cli, tmp_path / "tuned", "--to-language", "fr")
    out = tmp_path / "out"
    done = heedful_cli("export", tmp_path / "tuned", out, "--format", "bart")
    assert done.returncode == 0, done.stderr
    for code in ("sq", "nds"):  # in two letters and in three
        done = tune(code, tmp_path / "unknown")
        assert done.returncode == 2
        message = f"data.target_language must be a language of this model, but is '{code}'"
        assert message in done.stderr


def test_a_server_offers_the_pairs_before_the_folder(heedful_cli, zygote, run):
    expected = {
        code: translated(heedful_cli, run, "--to-language", code)[0] for code in ("de", "fr")
    }
    with serving(zygote, f"en:de,en:fr={run}") as server:
        for code, line in expected.items():
            body = {"q": SENTENCES[0], "source": "en", "target": code}
            answer = server.client.post("/translate", json=body)
            assert answer.json()["translatedText"] == line
        languages = server.client.get("/languages").json()
        assert {language["code"] for language in languages if language["targets"]} == {"en"}
        body = {"q": SENTENCES[0], "source": "en", "target": "zh"}
        assert server.client.post("/translate", json=body).status_code == 400
        looked = {"q": SENTENCES[0], "source": "en", "target": "de"}
        answer = server.client.post("/v1/attend", json=looked).json()
        assert "deu_Latn" in json.dumps(answer)
