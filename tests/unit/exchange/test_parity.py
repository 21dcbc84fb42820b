from pathlib import Path

import numpy as np
import pytest

from heedful.errors import ParityFailed
from heedful.exchange.parity import Parity, ReferenceModel, compare, sample_sentences
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.tokenizer import Tokenizer

SENTENCES = ["a b", "b", "c a"]


class WordTranslator:
    """A model of four words with given probabilities."""

    name = "words"

    def __init__(self, scores, whole=True, order="abc"):
        self.scores, self.whole, self.order = np.log(np.array(scores)), whole, order

    def encode(self, sentences):
        return [[4 + self.order.index(word) for word in line.split()] for line in sentences]

    def log_probabilities(self, source, target):
        rows = np.tile(self.scores, (len(target) + 1, 1))
        return rows if self.whole else rows[np.arange(len(rows)), [*target, 3]][:, None]

    def outputs(self, sentences):
        return self.encode(sentences)


class Counting:
    """The same, off by something in single precision and by something else in double precision."""

    def __init__(self, words, single, double):
        self.words, self.off, self.double = words, single, double
        self.name, self.encode, self.outputs = words.name, words.encode, words.outputs

    def in_double(self):
        return Counting(self.words, self.double, self.double)

    def log_probabilities(self, source, target):
        return self.words.log_probabilities(source, target) + self.off


EVEN = WordTranslator([0.0001, 0.0001, 0.0001, 0.0997, 0.3, 0.3, 0.3])
OTHER = [0.0001, 0.0001, 0.0001, 0.0997, 0.31, 0.29, 0.3]


def test_a_model_is_equal_to_itself():
    assert isinstance(EVEN, ReferenceModel)
    report = compare(EVEN, EVEN, SENTENCES, 1e-6)
    report.check()
    assert (report.difference, report.same_tokens, report.same_outputs) == (0.0, 3, 3)
    assert "3 of 3 translations equal" in str(report)


@pytest.mark.parametrize(
    ("far", "precise", "is_equal"),
    [(0.05, 0.0, True), (0.05, 1e-5, False), (0.2, 0.0, False), (0.05, np.nan, False)],
)
def test_double_precision_decides_where_single_precision_is_not_far_off(far, precise, is_equal):
    here, there = Counting(EVEN, 0.0, 0.0), Counting(EVEN, far, precise)
    report = compare(here, there, SENTENCES, 1e-3)
    assert report.precise == pytest.approx(precise, abs=1e-12, nan_ok=True)
    if is_equal:
        report.check()
        assert "0.05 (bound 0.001), by 0 in double precision" in str(report)
    else:
        with pytest.raises(ParityFailed):
            report.check()
    assert compare(here, EVEN, SENTENCES, 1e-3).precise is None


@pytest.mark.parametrize(("equal", "is_enough"), [(20, True), (19, True), (18, False)])
def test_fewer_than_95_of_100_equal_translations_are_said(equal, is_enough):
    report = Parity("words", 20, 1e-3, 0.0, 20, equal, 0.1, 0.1)
    report.check()
    if is_enough:
        report.check_outputs(Path("run"))
        return
    with pytest.raises(ParityFailed, match=r"18 of 20\. run is complete: its log-prob"):
        report.check_outputs(Path("run"))
    with pytest.raises(ParityFailed, match=r"20\. Nothing is uploaded\. The log-prob"):
        report.check_outputs(None)


def test_where_one_sentence_takes_long_the_others_are_left_out():
    report = compare(EVEN, EVEN, SENTENCES, 1e-6, patience=60.0)
    assert (report.sentences, report.same_outputs, report.left_out) == (3, 3, 0)
    report = compare(EVEN, EVEN, SENTENCES, 1e-6, patience=0.0)
    assert (report.sentences, report.same_outputs, report.left_out) == (1, 1, 2)
    assert str(report).endswith("2 more sentences were skipped because they would take too long")


def test_what_a_translation_may_take_is_bounded():
    endless = WordTranslator(OTHER)
    endless.outputs = lambda sentences: [[4] * 9_999 for _ in sentences]
    asked = []
    tell = endless.log_probabilities
    endless.log_probabilities = lambda *pair: asked.append(len(pair[1])) or tell(*pair)
    compare(EVEN, endless, SENTENCES, 1e9)
    assert set(asked) == {512}


@pytest.mark.parametrize("whole", [True, False])
def test_the_largest_difference_decides(whole):
    report = compare(EVEN, WordTranslator(OTHER, whole), SENTENCES, 1e-6)
    assert report.difference == pytest.approx(np.log(0.3 / 0.29), rel=1e-6)
    with pytest.raises(ParityFailed, match="Nothing was written"):
        report.check()
    compare(EVEN, WordTranslator(OTHER, whole), SENTENCES, 0.1).check()


def test_symbols_that_one_side_lacks_do_not_count():
    there = WordTranslator([0.0001, 0.0001, 0.0001, 0.0997, 0.3, 0.3, 0.3])
    there.scores[2] = -np.inf
    compare(EVEN, there, SENTENCES, 1e-6).check()


def test_what_is_no_number_is_not_equal():
    there = WordTranslator(OTHER)
    there.scores[4] = np.nan
    with pytest.raises(ParityFailed):
        compare(EVEN, there, SENTENCES, 1e9).check()


def test_sentences_that_are_cut_differently_are_not_equal():
    with pytest.raises(ParityFailed, match="1 of 3 sentences with equal subwords"):
        compare(EVEN, WordTranslator([0.1] * 7, order="cba"), SENTENCES, 1e9).check()


def test_made_up_sentences_have_the_words_and_tags_of_the_tokenizer():
    names = ["<pad>", "<unk>", "</s>", ">>de<<", "x", "y"]
    special = {"pad": "<pad>", "unknown": "<unk>", "end": "</s>"}
    id_mapping = IdMapping.of({name: n for n, name in enumerate(names)}, special, len(names))
    model = ImportedModel(id_mapping, "spaces")
    tokenizer = Tokenizer(model, source_language="", target_language="")
    made = sample_sentences(tokenizer, 4)
    assert made == sample_sentences(tokenizer, 4)
    assert [len(line.split()) for line in made] == [2, 9, 17, 25]
    assert all(line.startswith(">>de<< ") and set(line[7:]) <= set("xy ") for line in made)
