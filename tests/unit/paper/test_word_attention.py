"""Words and punctuation of a sentence, for any subwords."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import SettingError
from heedful.paper.word_attention import WordAttention, words_of
from heedful.tokenization.tokenizer import Tokenizer

LINES = [
    "The Law will never be perfect, but its application should be just - this is what we want.",
    "“A dog,” she said, “doesn't run (in the garden)...”",
    "its dogs run, and its cats do not run.",
]
KINDS = {"bpe": 120, "unigram": 53, "character": 53, "word": 20}


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    file = tmp_path_factory.mktemp("text") / "text.en"
    file.write_text("\n".join(LINES * 30) + "\n", encoding="utf-8")
    return {
        kind: Tokenizer.train(
            [file],
            [file],
            kind=kind,
            vocabulary_size=size,
            shared=True,
            source_language="en",
            target_language="en",
            seed=0,
        )
        for kind, size in KINDS.items()
    }


def names(tokenizer, sentence):
    (ids,) = tokenizer.encode_source([sentence])
    return [word.name for word in words_of(tokenizer, sentence, ids)]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character"])
def test_marks_stand_alone_as_in_the_papers_figures(tokenizers, kind):
    assert " ".join(names(tokenizers[kind], LINES[0])) == (
        "The Law will never be perfect , but its application should be just - this is what we "
        "want ."
    )


def test_marks_before_and_behind_a_word_stand_alone_those_within_do_not(tokenizers):
    assert " ".join(names(tokenizers["character"], LINES[1])) == (
        "“ A dog , ” she said , “ doesn't run ( in the garden ) . . . ”"
    )


def test_marks_that_are_no_subwords_of_their_own_stay_where_they_are(tokenizers):
    found = names(tokenizers["word"], LINES[2])
    assert " ".join(found) == LINES[2]
    assert "run," in found


WORDS = ["the", "Law,", "“just”", "zebra", "...", "-", "☃", "☃☃!", "doesn't", "(dogs)", "", "7,5"]


@settings(max_examples=60)
@given(st.sampled_from(list(KINDS)), st.lists(st.sampled_from(WORDS), min_size=1, max_size=8))
def test_no_letter_is_lost_and_every_subword_is_in_one_word(tokenizers, kind, words):
    tokenizer, sentence = tokenizers[kind], " ".join(words)
    (ids,) = tokenizer.encode_source([sentence])
    found = words_of(tokenizer, sentence, ids)
    if not sentence.strip():
        assert not found  # blanks are not a word, even where they are subwords
        return
    assert "".join(word.name for word in found).replace(" ", "") == sentence.replace(" ", "")
    pieces = [piece for word in found for piece in word.pieces]
    assert pieces == list(range(len(ids)))


def test_a_word_is_found_by_its_letters_and_the_second_by_its_number():
    looks = WordAttention(
        ("Its", "dog", "saw", "its", "dog", "."), np.zeros((1, 1, 6, 6)), (), False
    )
    assert looks.find("dog", "--query") == (1,)
    assert looks.find("dog:2", "--query") == (4,)
    assert looks.find("its", "--query") == (3,)
    assert looks.find("SAW", "--query") == (2,)
    assert looks.find("“dog”:2 .", "--query") == (4, 5)
    assert looks.find("saw its:1 dog:2", "--query") == (2, 3, 4)
    for wrong in ("cat", "dog:3", "dog:0", ""):
        with pytest.raises(SettingError, match="--query"):
            looks.find(wrong, "--query")
