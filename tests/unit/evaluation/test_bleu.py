import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import TextError
from heedful.evaluation.bleu import Scores, bleu_metric, evaluate_texts
from heedful.evaluation.sufficient_statistics import MetricScore
from heedful.evaluation.validation import score_bleu
from heedful.text.corpus import read_lines

HYPOTHESES = ["The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."]
REFERENCES = [
    ["The dog bit the man.", "It was not unexpected.", "The man bit him first."],
    ["The dog had bit the man.", "No one was surprised.", "The man had bitten the dog."],
]
lines = st.lists(st.text(st.characters(codec="utf-8"), max_size=30), min_size=1, max_size=5)


def test_a_real_text_has_the_same_bleu_by_either_way(corpora: Path):
    folder = corpora / "fixtures-bleu/wmt22-fr-de"
    hypotheses = list(read_lines(folder / "generaltest2022.fr-de.hyp.Online-W.de.xz"))[:300]
    reference = list(read_lines(folder / "generaltest2022.fr-de.ref.A.de.xz"))[:300]
    scores = evaluate_texts(hypotheses, [reference], language="de")
    assert scores.bleu.score == score_bleu(reference, "")(hypotheses)
    assert scores.bleu.score == bleu_metric([reference]).corpus_score(hypotheses, None).score


def test_each_score_carries_the_signature_that_made_it():
    scores = evaluate_texts(HYPOTHESES, REFERENCES, lowercase=True)
    assert scores.bleu.signature.startswith("nrefs:2|case:lc|eff:no|tok:13a|smooth:exp|version:")
    assert scores.chrf.signature.startswith("nrefs:2|case:lc|eff:yes|nc:6|nw:0|space:no|version:")
    assert scores.ter.signature.startswith("nrefs:2|case:lc|tok:tercom|norm:no|punct:yes|asian:no")


def test_a_perfect_translation_has_the_best_score_of_each():
    scores = evaluate_texts(REFERENCES[0], REFERENCES[:1])
    assert scores.bleu.score == pytest.approx(100)
    assert scores.chrf.score == pytest.approx(100)
    assert scores.ter.score == 0
    assert (scores.exact_match.score, scores.cer.score) == (100, 0)


def test_scores_become_plain_values_in_the_shape_of_the_command_line():
    bleu = MetricScore(1.0, "b", interval=(0.5, 1.5))
    others = (
        MetricScore(number, letter)
        for number, letter in ((2.0, "c"), (3.0, "t"), (4.0, "e"), (5.0, "r"))
    )
    scores = Scores(bleu, *others)
    assert scores.to_dict() == {
        "bleu": {"score": 1.0, "signature": "b", "interval": [0.5, 1.5]},
        "chrf": {"score": 2.0, "signature": "c"},
        "ter": {"score": 3.0, "signature": "t"},
        "exact_match": {"score": 4.0, "signature": "e"},
        "cer": {"score": 5.0, "signature": "r"},
    }
    real = evaluate_texts(HYPOTHESES, REFERENCES).to_dict()
    assert json.loads(json.dumps(real)) == real


def test_lowercase_ignores_case_and_the_default_does_not():
    shouted = [line.upper() for line in REFERENCES[0]]
    assert evaluate_texts(shouted, REFERENCES[:1]).bleu.score < 10
    scores = evaluate_texts(shouted, REFERENCES[:1], lowercase=True)
    assert scores.bleu.score == pytest.approx(100)
    assert scores.chrf.score == pytest.approx(100)


@pytest.mark.parametrize("language", ["zh", "zh-TW", "ZH_cn"])
def test_chinese_is_tokenized_by_characters(language):
    chinese = evaluate_texts(["我喜欢红色的大狗"], [["我喜欢红色的小狗"]], language=language)
    assert "tok:zh" in chinese.bleu.signature
    assert chinese.bleu.score > 50
    unsegmented = evaluate_texts(["我喜欢红色的大狗"], [["我喜欢红色的小狗"]])
    assert unsegmented.bleu.score == 0


@pytest.mark.parametrize("language", ["", "de", "fr", "cs-CZ"])
def test_every_other_language_is_tokenized_by_13a(language):
    assert "tok:13a" in evaluate_texts(["a b"], [["a b"]], language=language).bleu.signature


def test_unequal_counts_are_refused_with_both_counts():
    with pytest.raises(TextError, match=r"3 hypotheses and 2 lines in reference set 2 of 2"):
        evaluate_texts(HYPOTHESES, [REFERENCES[0], REFERENCES[1][:2]])
    with pytest.raises(TextError, match="1 hypotheses and 3 lines"):
        evaluate_texts(HYPOTHESES[:1], REFERENCES[:1])


def test_nothing_to_score_is_refused():
    with pytest.raises(TextError, match="no hypotheses"):
        evaluate_texts([], [[]])
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
    assert 0 <= scores.exact_match.score <= 100
    assert scores.cer.score >= 0
    assert score_bleu(list(reversed(texts)), "")(texts) == scores.bleu.score
