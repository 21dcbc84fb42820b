"""The p-values of Moses and MultEval for whole systems of WMT17."""

import csv

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from heedful.evaluation.significance import compare
from heedful.evaluation.sufficient_statistics import measure
from heedful.text.corpus import read_lines

BASELINE = "newstest2017.LIUM-NMT.4900.en-de"


@pytest.fixture(scope="module")
def published(corpora):
    """The published score of each WMT17 system, and ours on the same untokenized text."""
    folder = corpora / "fixtures-bleu/wmt17-en-de"
    reference = list(read_lines(corpora / "wmt-newstest/en-de/newstest2017.de.xz"))
    metric = BLEU(tokenize="none", references=[reference], force=True)
    with (folder / "scores.tsv").open(encoding="utf-8", newline="") as file:
        rows = {row["system"]: row for row in csv.DictReader(file, delimiter="\t")}
    return {
        name: (row, measure(metric, list(read_lines(folder / f"{name}.xz"))))
        for name, row in rows.items()
    }


@pytest.mark.parametrize(
    ("test", "column", "trials"),
    [
        ("bootstrap", "moses_paired_bootstrap_p_vs_LIUM", 6_000),
        ("randomization", "multeval_AR_bleu_p_vs_LIUM", 10_000),
    ],
)
def test_p_values_are_those_of_moses_and_multeval(published, test, column, trials):
    baseline = published[BASELINE][1]
    ours = [measured for name, (_, measured) in published.items() if name != BASELINE]
    expected = [float(row[column]) for name, (row, _) in published.items() if name != BASELINE]
    found = compare(ours, [baseline] * len(ours), test)
    assert len(found) == 8
    for p_value, comparison in zip(expected, found, strict=True):
        # Both are counts of a draw: three standard deviations of their difference.
        spread = np.sqrt(p_value * (1 - p_value) * (1 / trials + 1 / 10_000))
        assert comparison.p_value == pytest.approx(p_value, abs=3 * spread + 2 / trials)
        assert comparison.score == baseline.score
