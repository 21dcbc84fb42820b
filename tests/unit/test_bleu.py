import csv
import json
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import MissingExtra, TextError
from heedful.evaluation.bleu import MetricScore, Scores, corpus_bleu, evaluate_texts

HYPOTHESES = ["The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."]
REFERENCES = [
    ["The dog bit the man.", "It was not unexpected.", "The man bit him first."],
    ["The dog had bit the man.", "No one was surprised.", "The man had bitten the dog."],
]
lines = st.lists(st.text(st.characters(codec="utf-8"), max_size=30), min_size=1, max_size=5)


def read(path: Path) -> list[str]:
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().removesuffix("\n").split("\n")


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.fixture(scope="module")
def fixtures(corpora: Path) -> Path:
    return corpora / "fixtures-bleu"


@pytest.fixture(scope="module")
def wmt17(corpora: Path, fixtures: Path):
    folder = fixtures / "wmt17-en-de"
    rows = {row["system"]: row for row in table(folder / "scores.tsv")}
    reference = read(corpora / "wmt-newstest/en-de/newstest2017.de.xz")
    return rows, lambda system: read(folder / f"{system}.xz"), reference


def unit_cases(fixtures: Path, name: str) -> tuple[list[dict], float]:
    group = json.loads((fixtures / "sacrebleu-unit.json").read_text(encoding="utf-8"))[name]
    return group["cases"], group["tolerance"]


def test_small_corpora_have_the_bleu_of_sacrebleus_own_tests(fixtures):
    cases, tolerance = unit_cases(fixtures, "bleu_corpus")
    plain = [case for case in cases if case["options"] in ({}, {"tokenize": "13a"})]
    assert len(plain) >= 3
    for case in plain:
        scores = evaluate_texts(case["hyps"], case["refs"])
        assert scores.bleu.score == pytest.approx(case["expected"], rel=tolerance, abs=tolerance)


def test_small_corpora_have_the_chrf_of_sacrebleus_own_tests(fixtures):
    cases, tolerance = unit_cases(fixtures, "chrf_effective_order")
    for case in cases:
        scores = evaluate_texts(case["hyps"], case["refs"])
        assert scores.chrf.score == pytest.approx(case["expected"], abs=tolerance)


def test_a_wmt17_system_scores_bit_for_bit_and_within_published_decimals(wmt17):
    rows, hypotheses, reference = wmt17
    scores = evaluate_texts(hypotheses("newstest2017.xmu.4910.en-de"), [reference])
    row = rows["newstest2017.xmu.4910.en-de"]
    assert scores.bleu.score == float(row["sacrebleu_2.6.0_bleu"])
    assert scores.chrf.score == float(row["sacrebleu_2.6.0_chrF2"])
    assert scores.ter.score / 100 == pytest.approx(float(row["tercom_ter"]), abs=0.00051)


def test_wmt17_systems_have_their_published_bleu(wmt17):
    rows, hypotheses, reference = wmt17
    for system in ("newstest2017.LIUM-NMT.4900.en-de", "newstest2017.online-G.0.en-de"):
        bleu = corpus_bleu(hypotheses(system), reference)
        assert bleu == float(rows[system]["sacrebleu_2.6.0_bleu"])
        assert bleu == pytest.approx(float(rows[system]["mteval_v13a_bleu"]), abs=0.005)


def test_a_wmt22_system_has_its_published_scores_bit_for_bit(fixtures):
    folder = fixtures / "wmt22-fr-de"
    hypotheses = read(folder / "generaltest2022.fr-de.hyp.Online-W.de.xz")
    reference = read(folder / "generaltest2022.fr-de.ref.A.de.xz")
    published = {
        row["metric"]: float(row["published_score"])
        for row in table(folder / "scores.tsv")
        if row["system"] == "Online-W"
    }
    scores = evaluate_texts(hypotheses, [reference], language="de")
    assert scores.bleu.score == corpus_bleu(hypotheses, reference) == published["bleu-A"]
    assert scores.chrf.score == published["chrf-A"]


def test_each_score_carries_the_signature_that_made_it():
    scores = evaluate_texts(HYPOTHESES, REFERENCES, lowercase=True)
    assert scores.bleu.signature.startswith("nrefs:2|case:lc|eff:no|tok:13a|smooth:exp|version:")
    assert scores.chrf.signature.startswith("nrefs:2|case:lc|eff:yes|nc:6|nw:0|space:no|version:")
    assert scores.ter.signature.startswith("nrefs:2|case:lc|tok:tercom|norm:no|punct:yes|asian:no")


def test_a_perfect_translation_scores_100_100_and_0():
    scores = evaluate_texts(REFERENCES[0], REFERENCES[:1])
    assert scores.bleu.score == pytest.approx(100)
    assert scores.chrf.score == pytest.approx(100)
    assert scores.ter.score == 0


def test_scores_become_plain_values_in_the_shape_of_the_command_line():
    scores = Scores(MetricScore(1.0, "b"), MetricScore(2.0, "c"), MetricScore(3.0, "t"))
    assert scores.to_dict() == {
        "bleu": {"score": 1.0, "signature": "b"},
        "chrf": {"score": 2.0, "signature": "c"},
        "ter": {"score": 3.0, "signature": "t"},
    }
    real = evaluate_texts(HYPOTHESES, REFERENCES).to_dict()
    assert json.loads(json.dumps(real)) == real


def test_lowercase_ignores_case_and_the_default_does_not():
    shouted = [line.upper() for line in REFERENCES[0]]
    assert corpus_bleu(shouted, REFERENCES[0], lowercase=True) == pytest.approx(100)
    assert corpus_bleu(shouted, REFERENCES[0]) < 10
    assert evaluate_texts(shouted, REFERENCES[:1], lowercase=True).chrf.score == pytest.approx(100)


@pytest.mark.parametrize("language", ["zh", "zh-TW", "ZH_cn"])
def test_chinese_is_tokenised_by_characters(language):
    chinese = evaluate_texts(["我喜欢红色的大狗"], [["我喜欢红色的小狗"]], language=language)
    assert "tok:zh" in chinese.bleu.signature
    assert chinese.bleu.score > 50
    unsegmented = evaluate_texts(["我喜欢红色的大狗"], [["我喜欢红色的小狗"]])
    assert unsegmented.bleu.score == 0


@pytest.mark.parametrize("language", ["", "de", "fr", "cs-CZ"])
def test_every_other_language_is_tokenised_by_13a(language):
    assert "tok:13a" in evaluate_texts(["a b"], [["a b"]], language=language).bleu.signature


@pytest.mark.parametrize(("language", "name"), [("ja", "ja-mecab"), ("ko-KR", "ko-mecab")])
def test_a_segmenter_is_used_where_installed_and_named_where_not(language, name):
    try:
        scores = evaluate_texts(["犬"], [["犬"]], language=language)
    except MissingExtra as error:
        assert f"pip install 'sacrebleu[{language[:2]}]'" in str(error)
        assert language in str(error)
        assert "\n" not in str(error)
    else:
        assert f"tok:{name}" in scores.bleu.signature


def test_unequal_counts_are_refused_with_both_counts():
    with pytest.raises(TextError, match=r"3 hypotheses and 2 lines in reference set 2 of 2"):
        evaluate_texts(HYPOTHESES, [REFERENCES[0], REFERENCES[1][:2]])
    with pytest.raises(TextError, match="1 hypotheses and 3 lines"):
        corpus_bleu(HYPOTHESES[:1], REFERENCES[0])


def test_nothing_to_score_is_refused():
    with pytest.raises(TextError, match="no hypotheses"):
        evaluate_texts([], [[]])
    with pytest.raises(TextError, match="no hypotheses"):
        corpus_bleu([], [])
    with pytest.raises(TextError, match="no references"):
        evaluate_texts(HYPOTHESES, [])


def test_a_flat_list_of_references_is_a_programming_error():
    with pytest.raises(TypeError, match="list of reference sets"):
        evaluate_texts(HYPOTHESES, REFERENCES[0])


@given(lines)
def test_any_text_can_be_scored_and_the_light_bleu_is_the_full_one(texts):
    scores = evaluate_texts(texts, [list(reversed(texts))])
    assert 0 <= scores.bleu.score <= 100.0001
    assert 0 <= scores.chrf.score <= 100.0001
    assert scores.ter.score >= 0
    assert corpus_bleu(texts, list(reversed(texts))) == scores.bleu.score
