"""Two real runs with different recipes, tokenizers and lives, side by side."""

import json
from dataclasses import replace

import pytest

from heedful.analysis.compare import HeldOutText, compare_runs
from heedful.analysis.info import describe_run
from heedful.bench.random_run import make_random_run
from heedful.cli.compare import _print
from heedful.config.load import load_config
from heedful.errors import RunFolderError, TextError
from heedful.evaluation.bleu import evaluate_texts
from heedful.evaluation.comparison import ComparedSentence, PairedScore
from heedful.translation.translator import Translator
from tests.support.commands import refused, train_arguments


@pytest.fixture(scope="module")
def other(heedful_cli, text, tmp_path_factory):
    """A run that differs in everything and was never validated."""
    out = tmp_path_factory.mktemp("other") / "words"
    settings = ("data.subwords=word", "model.norm=pre", "train.steps=8", "train.precision=fp32")
    done = heedful_cli(*train_arguments(text, out, *settings, validate=False))
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def options(text):
    """A text to translate, quickly."""
    files = ("--source", text / "valid.en", "--reference", text / "valid.fr")
    return (*files, "--beam", 1, "--sentences", 3, "--weights", "step-8", "--precision", "fp32")


def test_everything_is_there_for_programs(heedful_cli, trained, other, options, text):
    done = heedful_cli("compare", trained, other, *options, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["names"] == ["run", "words"]
    assert found["settings"]["model.norm"] == ["post", "pre"]
    assert found["settings"]["data.subwords"] == ["bpe", "word"]
    assert set(found["settings"]) == {
        "model.norm",
        "data.subwords",
        "train.steps",
        "corpus.valid_source",
        "corpus.valid_target",
    }
    infos, facts = [describe_run(run) for run in (trained, other)], found["facts"]
    assert facts["parameters"] == [info["parameters"] for info in infos]
    assert facts["counted_flops"] == [info["cost"]["counted_flops"] for info in infos]
    assert facts["steps"] == [24, 8]
    assert facts["weights"] == ["step-00000008"] * 2
    assert facts["bleu_step"][0] in (12, 24)
    assert facts["bleu"][1] is None
    assert "tokenizers differ" in found["notes"][0]
    assert "validated on different text" in found["notes"][1]

    sources = (text / "valid.en").read_text().splitlines()
    references = (text / "valid.fr").read_text().splitlines()
    translated = []
    for side, run in enumerate((trained, other)):
        translator = Translator.load(run, weights="step-8", precision="fp32")
        translated.append([line.text for line in translator.translate(sources, beam=1)])
        expected = evaluate_texts(translated[side], [references])
        assert found["scores"][0]["scores"][side] == pytest.approx(expected.bleu.score)
        assert found["scores"][1]["scores"][side] == pytest.approx(expected.chrf.score)
        assert found["scores"][2]["scores"][side] == pytest.approx(expected.exact_match.score)
        assert found["scores"][3]["scores"][side] == pytest.approx(expected.cer.score)
    assert len(found["sentences"]) == 3
    for sentence in found["sentences"]:
        index = sentence["line"] - 1
        assert sentence["source"] == sources[index]
        assert sentence["references"] == [references[index]]
        assert sentence["translations"] == [lines[index] for lines in translated]


LONG = " ".join(["[brackets] of its own", "and", "many"] * 20)


def test_people_get_tables_of_at_most_a_hundred_columns(trained, other, capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    score = PairedScore("BLEU", (21.0, 22.5), 0.04, "nrefs:1|ar:10000|seed:12345|…")
    sentence = ComparedSentence(7, LONG, ("un chat", LONG), (LONG, f"{LONG} more"), (90.0, 25.5))
    sure = PairedScore("chrF", (21.0, 32.5), 0.0001, "nrefs:1|ar:10000|seed:12345|…")
    found = replace(compare_runs(trained, other), scores=(score, sure), sentences=(sentence,))
    _print(found)
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 100
    assert [line for line in lines if line != line.rstrip()] == []
    assert lines[0].split() == ["run", "words"]
    assert ["model.norm", "post", "pre"] in map(str.split, lines)
    assert ["corpus.valid_source", "valid.en"] in [line.split()[:2] for line in lines]
    assert ["BLEU", "21.00", "22.50", "+1.50", "0.040,", "significant"] in map(str.split, lines)
    assert ["chrF", "21.00", "32.50", "+11.50", "<", "0.001,", "significant"] in map(
        str.split, lines
    )
    assert "line 7: chrF 90.0 and 25.5" in lines
    assert ["reference", "un", "chat"] in map(str.split, lines)
    words = " ".join(shown.partition("  words")[2].split())
    assert words.endswith(f"{LONG} [more]")
    assert "\x1b" not in shown


def test_a_run_is_like_itself(trained):
    found = compare_runs(trained, trained)
    assert found.names == ("run", "run (2)")
    assert found.settings == {}
    assert found.notes == found.scores == found.sentences == ()


def test_without_a_language_code_the_script_of_the_references_decides(trained, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    make_random_run(run, load_config("tiny"), 50)  # translates into yy, which is no language
    for name, line in (("test.src", "w1"), ("test.trg", "我喜欢狗")):
        (tmp_path / name).write_text(f"{line}\n", "utf-8")
    held_out = HeldOutText(tmp_path / "test.src", [tmp_path / "test.trg"], beam=1)
    assert "tok:zh" in compare_runs(run, run, held_out).scores[0].signature
    assert "tok:13a" in compare_runs(run, trained, held_out).scores[0].signature


def test_what_cannot_be_compared_is_refused(heedful_cli, trained, text, tmp_path):
    done = heedful_cli("compare", trained, trained, "--source", text / "valid.en")
    assert done.returncode == 2
    assert "--reference" in done.stderr
    for option, value in (("--weights", "last"), ("--beam", 2), ("--sentences", 0)):
        done = heedful_cli("compare", trained, trained, option, value)
        refused(done, option, "needs --source and --reference")
    (tmp_path / "short.fr").write_text("un chien\n")
    held_out = HeldOutText(text / "valid.en", [tmp_path / "short.fr"])
    with pytest.raises(TextError, match=r"valid\.en has 40 and .*short\.fr has 1\."):
        compare_runs(trained, trained, held_out)
    with pytest.raises(RunFolderError, match=r"holds no config\.json"):
        compare_runs(trained, tmp_path)
