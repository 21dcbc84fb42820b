from unicodedata import normalize

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.overlap.hashes import hash_lines
from heedful.data.overlap.words import grams, words

texts = st.lists(st.text(st.sampled_from("aBb ba.,éÉ\u0301日本\n")), max_size=8)


@given(texts)
def test_words_and_grams_are_those_of_the_plain_way(lines):
    hashes = hash_lines(lines)
    assert hashes.word_counts.tolist() == [len(list(words(line))) for line in lines]
    plain = [(row, gram) for row, line in enumerate(lines) for gram in grams(words(line))]
    assert hashes.gram_lines.tolist() == [row for row, _ in plain]
    of_gram = {}
    for (_, gram), value in zip(plain, hashes.grams.tolist(), strict=True):
        assert of_gram.setdefault(gram, value) == value


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_form_and_case_change_no_hash_and_neighbors_neither(text, other):
    forms = [text, normalize("NFC", text), normalize("NFD", text), f"  {text}\u3000"]
    assert len({*hash_lines(forms).lines.tolist()}) == 1
    alone, beside = hash_lines([text]), hash_lines([text, other])
    assert beside.lines[0] == alone.lines[0]
    assert beside.grams[: len(alone.grams)].tolist() == alone.grams.tolist()


def test_other_words_and_other_orders_have_other_hashes():
    lines = ["a b c d", "b a c d", "a b c e", "a b c dd", "a b cd e"]
    assert len(np.unique(hash_lines(lines).grams)) == len(lines)


def test_no_line_has_no_hash():
    hashes = hash_lines([])
    assert not len(hashes.lines) and not len(hashes.grams)
    assert hash_lines(["", "...", "\ud800"]).word_counts.tolist() == [0, 0, 0]
