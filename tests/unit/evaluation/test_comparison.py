import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu import sentence_chrf

from heedful.data.toy_grammar.corpus import split_pairs
from heedful.evaluation.bleu import evaluate_texts
from heedful.evaluation.comparison import mark_differences, most_different, paired_scores

PAIRS = split_pairs(60, 10, seed=3)[0]
SOURCES = [source for source, _ in PAIRS]
REFERENCES = [target for _, target in PAIRS]


def shorten(sentences, every, seed=1):
    """Drop a word of some sentences."""
    generator = random.Random(seed)
    shortened = []
    for number, sentence in enumerate(sentences):
        words = sentence.split()
        if number % every == 0:
            del words[generator.randrange(len(words))]
        shortened.append(" ".join(words))
    return shortened


def test_scores_are_those_of_evaluate_and_a_clear_difference_is_significant():
    good, bad = shorten(REFERENCES, 9), shorten(REFERENCES, 1)
    bleu, chrf, exact, errors = paired_scores(good, bad, [REFERENCES], "fr")
    expected = [evaluate_texts(texts, [REFERENCES], language="fr") for texts in (good, bad)]
    assert bleu.scores == pytest.approx([scores.bleu.score for scores in expected])
    assert chrf.scores == pytest.approx([scores.chrf.score for scores in expected])
    assert bleu.p_value < 0.01
    assert chrf.p_value < 0.01
    assert exact.scores == pytest.approx([scores.exact_match.score for scores in expected])
    assert errors.scores == pytest.approx([scores.cer.score for scores in expected])
    assert max(exact.p_value, errors.p_value) < 0.01
    names = [score.name for score in (bleu, chrf, exact, errors)]
    assert names == ["BLEU", "chrF", "exact match", "CER"]
    assert "ar:10000" in bleu.signature
    assert "tok:13a" in bleu.signature


def test_chance_is_not_significant_and_equal_translations_never_are():
    one, other = shorten(REFERENCES, 3, seed=1), shorten(REFERENCES, 3, seed=2)
    assert min(score.p_value for score in paired_scores(one, other, [REFERENCES], "fr")) > 0.05
    assert [score.p_value for score in paired_scores(one, one, [REFERENCES], "fr")] == [1] * 4


def test_sentences_are_sorted_by_how_much_worse_one_is():
    one, other = shorten(REFERENCES, 2), shorten(REFERENCES, 5, seed=4)
    found = most_different(SOURCES, one, other, [REFERENCES], range(len(SOURCES)))
    assert len(found) == sum(a != b for a, b in zip(one, other, strict=True))
    gaps = [abs(sentence.chrf[0] - sentence.chrf[1]) for sentence in found]
    assert gaps == sorted(gaps, reverse=True)
    for sentence in found:
        index = sentence.line - 1
        assert sentence.source == SOURCES[index]
        assert sentence.references == (REFERENCES[index],)
        assert sentence.translations == (one[index], other[index])
        scores = [sentence_chrf(text, [REFERENCES[index]]).score for text in sentence.translations]
        assert list(sentence.chrf) == pytest.approx(scores)


def test_lines_are_numbered_as_in_the_source_text():
    one, other = shorten(REFERENCES[:2], 2), ["", ""]
    found = most_different(SOURCES[:2], one, other, [REFERENCES[:2]], [4, 7])
    assert sorted(sentence.line for sentence in found) == [5, 8]


def test_differing_words_stand_in_brackets():
    assert mark_differences("a b c d", "a x c") == ("a [b] c [d]", "a [x] c")
    assert mark_differences("same", "same") == ("same", "same")
    assert mark_differences("", "two words") == ("", "[two words]")
    assert mark_differences("犬が走る", "猫が走る") == ("[犬]が走る", "[猫]が走る")
    assert mark_differences("the 犬 runs", "the 犬 sleeps") == ("the 犬 [runs]", "the 犬 [sleeps]")


@settings(max_examples=60)
@given(*[st.lists(st.sampled_from(["le", "chien", "l'", "犬", "走", "ไทย", "."]))] * 2)
def test_marking_keeps_the_text_and_leaves_the_same_words_bare(first, second):
    texts = " ".join(first), " ".join(second)
    marked = mark_differences(*texts)
    assert tuple(text.replace("[", "").replace("]", "") for text in marked) == texts
    bare = []
    for text in marked:
        outside = "".join(part.rpartition("]")[2] for part in text.split("["))
        bare.append("".join(outside.split()))
    assert bare[0] == bare[1]
