"""Rewards are the metrics of other modules, from 0 to 1."""

import pytest
import sacrebleu

from heedful.errors import SettingError
from heedful.evaluation.reward_metrics import REWARD_METRICS, reward_metric

REFERENCE = "Ein großer, roter Hund schläft."
TEXTS = [REFERENCE, "Ein roter Hund schläft.", "Eine Katze", ""]


def test_bleu_and_chrf_are_sacrebleus_for_sentences():
    bleu, chrf = reward_metric("bleu", "de"), reward_metric("chrf", "de")
    for text, first, second in zip(
        TEXTS, bleu(TEXTS, REFERENCE), chrf(TEXTS, REFERENCE), strict=True
    ):
        expected = sacrebleu.sentence_bleu(text, [REFERENCE], smooth_method="exp").score
        assert first == pytest.approx(expected / 100)
        assert second == pytest.approx(sacrebleu.sentence_chrf(text, [REFERENCE]).score / 100)


def test_gleu_counts_words_and_punctuation_marks_apart():
    # “Hund .” against “Hund !”: one of two words, one of 2 + 1 n-grams
    assert reward_metric("gleu", "de")(["Hund."], "Hund!") == [1 / 3]
    # characters of Chinese are words: three of four, two of three pairs, one of two triples
    assert reward_metric("gleu", "zh")(["我爱你"], "我爱你们") == [6 / 10]


def test_without_a_language_code_the_script_of_the_reference_decides():
    for language in ("", "trg"):
        gleu, bleu = (reward_metric(name, language) for name in ("gleu", "bleu"))
        assert gleu(["我爱你"], "我爱你们") == [6 / 10]
        assert bleu(["我爱你"], "我爱你们") == reward_metric("bleu", "zh")(["我爱你"], "我爱你们")
        assert gleu(["Hund."], "Hund!") == [1 / 3]


@pytest.mark.parametrize("name", REWARD_METRICS)
def test_a_perfect_translation_has_reward_1_and_nothing_has_0(name):
    assert reward_metric(name, "de")([REFERENCE, ""], REFERENCE) == pytest.approx([1.0, 0.0])


def test_another_metric_is_refused():
    with pytest.raises(SettingError, match=r"gleu or bleu or chrf, but is 'ter'"):
        reward_metric("ter")
