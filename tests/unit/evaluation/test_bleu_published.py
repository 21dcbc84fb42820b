"""
Stored system outputs have their published BLEU.

All of them, and their lower-cased BLEU, chrF and TER: tests/soak/test_published_scores.py.
"""

import csv
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from heedful.errors import TextError
from heedful.evaluation.bleu import bleu_metric, text_metrics
from heedful.evaluation.sufficient_statistics import SufficientStatistics, measure
from heedful.text.corpus import read_lines

# sacreBLEU sums four logarithms with `sum`, which since Python 3.12 rounds once, at the end.
LAST_BIT = 1e-14 if sys.version_info >= (3, 12) else 0.0
WMT = ("wmt21-en-de", "wmt22-de-en", "wmt22-de-fr", "wmt22-en-de", "wmt22-fr-de")
PAPERS = {
    "sockeye-wmt17-en-de": "newstest2017.de.xz",
    "lingeval-newstest-en-de": "newstest2014.de.xz",
}


def read(path: Path) -> list[str]:
    return list(read_lines(path))


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def reference_sets(folder: Path) -> dict[str, list[list[str]]]:
    """Under A, B, … one reference each; under “all” all of them, where there are several."""
    paths = sorted(folder.glob("*.ref.*"))
    alone = {path.name.split(".ref.")[1][0]: [read(path)] for path in paths}
    together = [reference for (reference,) in alone.values()]
    return alone if len(together) == 1 else alone | {"all": together}


@pytest.fixture(scope="module")
def fixtures(corpora: Path) -> Path:
    return corpora / "fixtures-bleu"


@pytest.fixture(scope="module")
def unit(fixtures: Path) -> dict:
    return json.loads((fixtures / "sacrebleu-unit.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def newstest2017(corpora: Path) -> dict:
    """The metrics of WMT17's text, whose reference is prepared once."""
    return text_metrics([read(corpora / "wmt-newstest/en-de/newstest2017.de.xz")], language="de")


@pytest.mark.parametrize("year", ["wmt22-de-fr", "wmt22-fr-de"])
def test_wmt22_bit_for_bit(fixtures, year):
    check_wmt(fixtures / year)


def check_wmt(folder):
    """Compare BLEU by every reference and by all with what was published."""
    rows = table(folder / "scores.tsv")
    outputs = {path.name.split(".")[3]: read(path) for path in folder.glob("*.hyp.*")}
    tokenizer = None
    for choice, references in reference_sets(folder).items():
        metric = bleu_metric(references, language=folder.name[-2:])
        # one tokenizer remembers the outputs' lines for all references
        metric.tokenizer = tokenizer = tokenizer or metric.tokenizer
        chosen = [row for row in rows if row["metric"] == f"bleu-{choice}"]
        assert len(chosen) == len(outputs)
        for row in chosen:
            score = measure(metric, outputs[row["system"]]).score
            assert math.isclose(score, float(row["published_score"]), rel_tol=LAST_BIT), row


def test_wmt17_bit_for_bit_and_within_the_decimals_of_moses(fixtures, newstest2017):
    check_wmt17(fixtures, newstest2017["bleu"], table(fixtures / "wmt17-en-de/scores.tsv")[:2])


def check_wmt17(fixtures, metric, rows):
    for row in rows:
        output = read(fixtures / f"wmt17-en-de/{row['system']}.xz")
        bleu = measure(metric, output).score
        assert math.isclose(bleu, float(row["sacrebleu_2.6.0_bleu"]), rel_tol=LAST_BIT)
        assert bleu == pytest.approx(float(row["mteval_v13a_bleu"]), abs=0.0051)


def test_chrf_bit_for_bit_and_within_the_decimals_of_its_author(fixtures, newstest2017):
    row = table(fixtures / "wmt17-en-de/scores.tsv")[0]
    output = read(fixtures / f"wmt17-en-de/{row['system']}.xz")
    chrf = measure(newstest2017["chrf"], output).score
    assert chrf == float(row["sacrebleu_2.6.0_chrF2"])
    assert chrf == pytest.approx(float(row["chrF_pm_eps"]), abs=6e-5)


def test_systems_of_a_paper_bit_for_bit_with_their_counts(corpora):
    check_paper(corpora, "lingeval-newstest-en-de")


def check_paper(corpora, folder):
    fixtures = corpora / "fixtures-bleu"
    references = [read(corpora / "wmt-newstest/en-de" / PAPERS[folder])]
    metric = bleu_metric(references, language="de")
    for row in table(fixtures / folder / "scores.tsv"):
        bleu = measure(metric, read(fixtures / folder / f"{row['file']}.xz"))
        assert bleu.score == float(row["sacrebleu_2.6.0_bleu"])
        lengths = [int(row["sys_len"]), int(row["ref_len"])]
        expected = [*lengths, *json.loads(row["counts"]), *json.loads(row["totals"])]
        assert bleu.counts.sum(axis=0).tolist() == expected


@pytest.mark.parametrize("language", ["de", "fr"])
def test_whole_references_are_tokenized_line_for_line(corpora, fixtures, language):
    text = read(corpora / f"wmt-newstest/en-{language}/newstest2014.{language}.xz")
    ours = bleu_metric([["a"]], language=language)
    for tokenize, name in ((ours.tokenizer, "13a"), (BLEU(tokenize="intl").tokenizer, "intl")):
        expected = read(fixtures / f"tokenized/newstest2014.{language}.{name}.xz")
        assert [tokenize(line.rstrip()) for line in text] == expected


def test_bleu_of_sacrebleus_own_small_corpora(unit):
    for case in unit["bleu_corpus"]["cases"]:
        metric = BLEU(**case["options"], references=case["refs"])
        assert measure(metric, case["hyps"]).score == pytest.approx(case["expected"], abs=1e-6)


def raw_bleu(references, smoothing: float) -> BLEU:
    options = {"smooth_method": "floor", "smooth_value": smoothing, "effective_order": True}
    return BLEU(tokenize="none", force=True, references=references, **options)


def test_raw_bleu_of_sacrebleus_own_small_corpora(unit):
    for case in unit["bleu_raw"]["cases"]:
        if len(case["refs"][0]) == len(case["hyps"]):
            found = measure(raw_bleu(case["refs"], 0.01), case["hyps"]).score / 100
            assert found == pytest.approx(case["expected"], abs=1e-8)
    (case,) = unit["bleu_offset"]["cases"]
    for smoothing, name in ((0.1, "expected_floor_0_1"), (0.0, "expected_floor_0")):
        found = measure(raw_bleu(case["refs"], smoothing), case["hyps"]).score / 100
        assert found == pytest.approx(case[name], abs=1e-8)


def test_counts_and_scores_of_counts_are_sacrebleus(unit):
    (case,) = unit["bleu_statistics"]["cases"]
    counted = measure(BLEU(tokenize="none", references=case["refs"]), case["hyps"]).counts[0]
    assert counted[2:6].tolist() == case["expected"]["common"]
    assert counted[6:].tolist() == case["expected"]["total"]

    def score(case, **options):
        lengths = [case["sys_len"], case["ref_len"]]
        sums = np.array([[*lengths, *case["stats"]["common"], *case["stats"]["total"]]], float)
        return SufficientStatistics(BLEU(**options), sums).score / 100

    for case in unit["bleu_from_statistics"]["cases"]:
        assert score(case) == pytest.approx(case["expected"], abs=1e-8)
    for case in unit["bleu_degenerate"]["cases"]:
        found = score(case, smooth_method="floor", smooth_value=case["floor"])
        assert found == pytest.approx(case["expected"], abs=1e-8)


@pytest.mark.parametrize("group", ["chrf_eps", "chrf_effective_order"])
def test_chrf_of_sacrebleus_own_small_corpora(unit, group):
    for case in unit[group]["cases"]:
        metric = CHRF(beta=3, eps_smoothing=group == "chrf_eps", references=case["refs"])
        found = measure(metric, case["hyps"]).score
        assert found == pytest.approx(case["expected"], abs=unit[group]["tolerance"])


def test_a_measurement_scores_any_selection_of_its_lines():
    references = [["a b c d e", "f g h i", "k l m n"], ["a b c d", "f g h", "k l m n o"]]
    hypotheses = ["a b c d e", "f g x i", "k l m n o p"]
    for name, metric in text_metrics(references).items():
        measured = measure(metric, hypotheses)
        for chosen in ([0, 1, 2], [1], [0, 0, 2]):
            sums = measured.counts[chosen].sum(axis=0, keepdims=True)
            again = text_metrics([[side[line] for line in chosen] for side in references])[name]
            alone = again.corpus_score([hypotheses[line] for line in chosen], None).score
            assert math.isclose(measured.scores(sums)[0], alone, rel_tol=1e-12)


def test_as_many_hypotheses_as_references_are_measured():
    metric = bleu_metric([["a", "b"]])
    with pytest.raises(TextError, match="3 hypotheses and 2 lines of references"):
        measure(metric, ["a", "b", "c"])
