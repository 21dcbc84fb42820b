"""Every published BLEU, chrF, lower-cased BLEU and TER of every stored system output."""

import math
from pathlib import Path

import pytest

from heedful.evaluation.bleu import bleu_metric, text_metrics
from heedful.evaluation.sufficient_statistics import measure
from tests.unit.evaluation.test_bleu_published import (
    LAST_BIT,
    PAPERS,
    WMT,
    check_paper,
    check_wmt,
    check_wmt17,
    read,
    reference_sets,
    table,
)


@pytest.mark.parametrize("year", WMT)
def test_bleu_of_wmt21_and_wmt22_by_every_reference_and_by_all(corpora, year):
    check_wmt(corpora / "fixtures-bleu" / year)


def test_bleu_of_wmt17(corpora):
    fixtures = corpora / "fixtures-bleu"
    reference = read(corpora / "wmt-newstest/en-de/newstest2017.de.xz")
    rows = table(fixtures / "wmt17-en-de/scores.tsv")
    check_wmt17(fixtures, bleu_metric([reference], language="de"), rows)


@pytest.mark.parametrize("folder", PAPERS)
def test_bleu_of_systems_of_papers(corpora, folder):
    check_paper(corpora, folder)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("year", WMT)
def test_chrf_of_wmt21_and_wmt22(corpora, year):
    folder = corpora / "fixtures-bleu" / year
    outputs = {path.name.split(".")[3]: read(path) for path in folder.glob("*.hyp.*")}
    for choice, references in reference_sets(folder).items():
        chrf = text_metrics(references)["chrf"]
        rows = [row for row in table(folder / "scores.tsv") if row["metric"] == f"chrf-{choice}"]
        assert len(rows) == len(outputs)
        for row in rows:
            score = measure(chrf, outputs[row["system"]]).score
            assert score == float(row["published_score"]), row


@pytest.mark.timeout(900)
def test_chrf_and_ter_of_wmt17(corpora):
    metrics = text_metrics([read(corpora / "wmt-newstest/en-de/newstest2017.de.xz")])
    folder = corpora / "fixtures-bleu/wmt17-en-de"
    for row in table(folder / "scores.tsv"):
        output = read(folder / f"{row['system']}.xz")
        assert measure(metrics["chrf"], output).score == float(row["sacrebleu_2.6.0_chrF2"])
        # Tercom's own figure, of which three decimals are published.
        ter = measure(metrics["ter"], output).score / 100
        assert ter == pytest.approx(float(row["tercom_ter"]), abs=0.00051), row


@pytest.mark.timeout(900)
@pytest.mark.parametrize("folder", PAPERS)
def test_chrf_and_lower_cased_bleu_of_systems_of_papers(corpora: Path, folder: str):
    references = [read(corpora / "wmt-newstest/en-de" / PAPERS[folder])]
    chrf = text_metrics(references)["chrf"]
    lower = bleu_metric(references, lowercase=True)
    for row in table(corpora / "fixtures-bleu" / folder / "scores.tsv"):
        output = read(corpora / "fixtures-bleu" / folder / f"{row['file']}.xz")
        assert measure(chrf, output).score == float(row["sacrebleu_2.6.0_chrF2"])
        bleu = measure(lower, output).score
        assert math.isclose(bleu, float(row["sacrebleu_2.6.0_bleu_lc"]), rel_tol=LAST_BIT)
