"""Sentences are short enough to be read once; `make check` reads those of the repository."""

import pytest
from tools import sentences


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("A run is saved.", 4),
        ("{', '.join(names)} must be in `a b c`, but is not.", 8),
        ("The parts (one, two, three) are read → and written.", 6),
    ],
)
def test_words_are_counted(text, count):
    assert sentences.words(text) == count


def test_a_seed_draws_the_same_sentences_of_each_kind(monkeypatch):
    monkeypatch.setattr(sentences, "SOURCE", sentences.SOURCE / "search")  # the others take long
    drawn = sentences.draw(1, 20)
    assert drawn == sentences.draw(1, 20)
    kinds = [kind for kind, _ in drawn]
    assert {kind: kinds.count(kind) for kind in kinds} == dict.fromkeys(sentences.by_kind(), 5)
