import json
import math

import pytest

from heedful.text.corpus import read_lines

SCORES = {"bleu", "paper_bleu", "chrf", "ter", "exact_match", "cer"}


@pytest.fixture
def pair(tmp_path):
    """A hypothesis and its reference, without a language."""
    (tmp_path / "h").write_text("the cat sat on the mat\nhello there world now\n")
    (tmp_path / "r").write_text("the cat sat on the mat\nHello there world now\n")
    return "--hypothesis", tmp_path / "h", "--reference", tmp_path / "r"


def test_scores_come_with_signatures(heedful_cli, pair):
    scores = json.loads(heedful_cli("evaluate", *pair, "--json").stdout)
    assert set(scores) == {*SCORES, "paper_bleu_missing"}
    assert scores["paper_bleu"] is None
    assert "case:mixed" in scores["bleu"]["signature"]
    assert scores["bleu"]["score"] < 100
    arguments = (*pair, "--json", "--lowercase", "--language", "en")
    lower = json.loads(heedful_cli("evaluate", *arguments).stdout)
    assert set(lower) == SCORES
    assert (scores["exact_match"]["score"], lower["exact_match"]["score"]) == (50, 100)
    assert (scores["cer"]["score"], lower["cer"]["score"]) == (pytest.approx(100 / 43), 0)
    assert math.isclose(lower["bleu"]["score"], 100.0)
    assert math.isclose(lower["paper_bleu"]["score"], 100.0)
    assert "case:lc" in lower["paper_bleu"]["signature"]
    lines = heedful_cli("evaluate", *pair).stdout.splitlines()
    names = ["BLEU", "paper", "chrF", "TER", "exact", "CER"]
    assert [line.split()[0] for line in lines[:6]] == names
    assert max(map(len, lines[:6])) <= 80
    assert [line.split()[0] for line in lines[7:]] == names
    assert lines[7].endswith(scores["bleu"]["signature"])


def test_two_systems_of_wmt22_are_compared(heedful_cli, corpora, tmp_path):
    folder = corpora / "fixtures-bleu/wmt22-de-fr"
    good, poor, reference = (tmp_path / f"{name}.fr" for name in ("good", "poor", "reference"))
    parts = {good: "hyp.Online-W", poor: "hyp.LT22", reference: "ref.A"}
    for path, part in parts.items():
        lines = list(read_lines(folder / f"generaltest2022.de-fr.{part}.fr.xz"))[:200]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    done = heedful_cli(
        "evaluate", "--hypothesis", good, "--reference", reference, "--against", poor,
        "--trials", 500, "--seed", 3, "--confidence", "--test", "bootstrap", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["resampling"] == {"test": "bootstrap", "trials": 500, "seed": 3}
    assert "tok:moses-fr" in found["paper_bleu"]["signature"]
    (other,) = found["against"]
    assert other["hypothesis"] == str(poor)
    for name, better in (("bleu", 1), ("paper_bleu", 1), ("chrf", 1), ("ter", -1), ("cer", -1)):
        assert other[name]["difference"] * better > 1
        assert other[name]["p_value"] == pytest.approx(1 / 501)
        low, high = found[name]["interval"]
        assert low < found[name]["score"] < high


def test_what_comet_needs_is_said_at_once(heedful_cli, pair):
    done = heedful_cli("evaluate", *pair, "--comet", "Unbabel/wmt22-comet-da")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "The source text is missing" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_help_warns_of_what_a_comet_model_may_do(heedful_cli):
    shown = " ".join(heedful_cli("evaluate", "--help").stdout.replace("│", " ").split())
    assert "runs code from it" in shown
    assert "give only a model that you trust" in shown


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--test", "coin"), "--test"),
        (("--trials", "10"), "--trials"),
        (("--against", "no.such.file"), "no.such.file"),
    ],
)
def test_what_cannot_be_done_is_refused(heedful_cli, pair, arguments, part):
    done = heedful_cli("evaluate", *pair, *arguments)
    assert done.returncode == 2
    assert part in done.stderr
    assert "Traceback" not in done.stderr
