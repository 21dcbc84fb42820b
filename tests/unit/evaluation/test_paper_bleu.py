import html
import math
import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import TextError
from heedful.evaluation.moses import replace_unicode_punctuation, tokenize
from heedful.evaluation.paper_bleu import PaperBLEU, paper_text, split_compounds
from heedful.evaluation.sufficient_statistics import measure
from heedful.evaluation.validation import score_bleu
from heedful.text.corpus import read_lines

AT = "##AT##-##AT##"


def paper_bleu(hypotheses, references, language, **options):
    return measure(PaperBLEU(references, language, **options), hypotheses)


# The same lines through perl -ple 's{(\S)-(\S)}{$1 ##AT##-##AT## $2}g', version 5.36.
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a rich-text format", f"a rich {AT} text format"),
        ("rich-text-format", f"rich {AT} text {AT} format"),
        ("x-y-z", f"x {AT} y-z"),
        ("1-2-3-4", f"1 {AT} 2-3 {AT} 4"),
        ("ab-c-de", f"ab {AT} c-de"),
        ("x-ä-z", f"x {AT} ä {AT} z"),
        ("a-€-b", f"a {AT} € {AT} b"),
        ("a--b", f"a {AT} -b"),
        ("a---b", f"a {AT} --b"),
        ("--", "--"),
        ("---", f"- {AT} -"),
        ("- -a a- -", "- -a a- -"),
        ("Öl- und Gas-Preis", f"Öl- und Gas {AT} Preis"),
        ("&quot;-&quot;", f"&quot; {AT} &quot;"),
        ("a\u00a0-b", f"a\u00a0 {AT} b"),
        ("", ""),
    ],
)
def test_compounds_are_split_as_perl_splits_them(line, expected):
    assert split_compounds(line) == expected


@given(st.text(st.sampled_from("ab-ä ")))
def test_only_hyphens_between_characters_are_split_and_nothing_is_lost(line):
    split = split_compounds(line)
    assert split.replace(f" {AT} ", "-") == line
    for word, following in pairwise(split.split(" ")):
        assert word != AT or following


def multi_bleu(hypotheses: list[str], references: list[list[str]]) -> float:
    """BLEU as multi-bleu.perl counts it, written from its formula and nothing else."""

    def ngrams(words: list[str], order: int) -> Counter[str]:
        starts = range(len(words) - order + 1)
        return Counter(" ".join(words[start : start + order]) for start in starts)

    correct, total, length, reference_length = [0] * 5, [0] * 5, 0, 0
    for hypothesis, *candidates in zip(hypotheses, *references, strict=True):
        words, others = hypothesis.split(" "), [candidate.split(" ") for candidate in candidates]
        length += len(words)
        reference_length += min(
            (len(other) for other in others), key=lambda n: (abs(n - len(words)), n)
        )
        for order in range(1, 5):
            allowed: Counter[str] = Counter()
            for other in others:
                allowed |= ngrams(other, order)
            found = ngrams(words, order)
            correct[order] += (found & allowed).total()
            total[order] += found.total()
    if not all(correct[1:]):
        return 0.0
    brevity = min(0.0, 1 - reference_length / length)
    precisions = [math.log(correct[order] / total[order]) for order in range(1, 5)]
    return 100 * math.exp(brevity + sum(precisions) / 4)


@pytest.fixture(scope="module")
def newstest2017(corpora):
    return list(read_lines(corpora / "wmt-newstest/en-de/newstest2017.de.xz"))


@pytest.fixture(scope="module")
def transformer(corpora):
    """Sockeye's Transformer of 2017 on newstest2017."""
    folder = corpora / "fixtures-bleu/sockeye-wmt17-en-de"
    return list(read_lines(folder / "transformer.sockeye.en-de.detok.xz"))


# 27.716208417093 is also what the Perl scripts give, run one after the other.
def test_a_real_system_scores_as_by_the_script_and_as_by_a_plain_count(newstest2017, transformer):
    score = paper_bleu(transformer, [newstest2017], "de")
    assert score.score == pytest.approx(27.716208417093, abs=1e-9)
    ours, theirs = (
        [tokenize(replace_unicode_punctuation(line), "de") for line in text]
        for text in (transformer, newstest2017)
    )
    plain = multi_bleu([*map(split_compounds, ours)], [[*map(split_compounds, theirs)]])
    assert score.score == pytest.approx(plain, abs=1e-9)
    unsplit = multi_bleu(ours, [theirs])
    assert 0.1 < score.score - unsplit < 1
    assert 0 < score.score - score_bleu(newstest2017, "")(transformer) < 1


def test_on_newstest2014_the_split_is_worth_half_a_point_and_all_of_it_one(corpora):
    reference = list(read_lines(corpora / "wmt-newstest/en-de/newstest2014.de.xz"))[:1000]
    path = corpora / "fixtures-bleu/lingeval-newstest-en-de/bpe2bpe.newstest2014.xz"
    output = [html.unescape(line) for line in read_lines(path)][:1000]
    score = paper_bleu(output, [reference], "de").score
    unsplit, bare = (
        multi_bleu([prepare(line) for line in output], [[prepare(line) for line in reference]])
        for prepare in (
            lambda line: tokenize(replace_unicode_punctuation(line), "de"),
            lambda line: tokenize(line, "de"),
        )
    )
    assert 0.3 < score - unsplit < 1.2
    assert 0.1 < unsplit - bare < 1
    assert 0.5 < score - score_bleu(reference, "")(output) < 2


def test_several_references_count_as_by_a_plain_count(corpora):
    folder = corpora / "fixtures-bleu/wmt21-en-de"
    references = [
        list(read_lines(folder / f"newstest2021.en-de.ref.{letter}.de.xz"))[:300]
        for letter in "ACD"
    ]
    output = list(read_lines(folder / "newstest2021.en-de.hyp.WeChat-AI.de.xz"))[:300]
    score = paper_bleu(output, references, "de-AT")
    plain = multi_bleu(
        [paper_text(line, "de") for line in output],
        [[paper_text(line, "de") for line in reference] for reference in references],
    )
    assert score.score == pytest.approx(plain, abs=1e-9)
    assert score.signature.startswith("nrefs:3|script:get_ende_bleu|case:mixed|punct:unicode|")


def test_the_steps_are_punctuation_tokens_and_compounds():
    expected = f"„ Das ist &apos; s &quot; , sagt Rich {AT} Text ."
    assert paper_text("„Das ist ’s“, sagt Rich-Text.", "de") == expected


def test_the_signature_says_what_was_done():
    text = ["Ein Haus steht am Rand."]
    signature = paper_bleu(text, [text], "de_DE", lowercase=True).signature
    pattern = (
        r"nrefs:1\|script:get_ende_bleu\|case:lc\|punct:unicode\|tok:moses-de\|split:at-hyphen"
        r"\|smooth:none\|sacremoses:[\d.]+\|version:[\d.]+"
    )
    assert re.fullmatch(pattern, signature)


def test_case_counts_unless_it_is_ignored():
    shouted, said = ["EIN HAUS STEHT AM RAND"], [["ein Haus steht am Rand"]]
    assert paper_bleu(shouted, said, "de").score == 0
    assert paper_bleu(shouted, said, "de", lowercase=True).score == pytest.approx(100)


def test_without_four_words_in_a_row_there_is_nothing():
    assert paper_bleu(["a b c x d e f"], [["a b c y d e f"]], "en").score == 0
    assert score_bleu(["a b c y d e f"], "")(["a b c x d e f"]) > 0


@pytest.mark.parametrize("language", ["zh", "ja-JP", "th", "bo", "dzo"])
def test_a_language_without_spaces_is_refused(language):
    with pytest.raises(TextError, match="with spaces between words"):
        paper_bleu(["a"], [["a"]], language)


def test_as_many_hypotheses_as_references_are_scored():
    metric = PaperBLEU([["a", "b"]], "de")
    with pytest.raises(TextError, match="1 hypotheses and 2 lines"):
        measure(metric, ["a"])
