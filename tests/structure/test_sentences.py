"""Sentences are short enough to be read once."""

import pytest
from tools import sentences


def test_no_sentence_is_too_long(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["sentences.py", "long"])
    assert sentences.main() == 0, capsys.readouterr().out


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


def test_a_seed_draws_the_same_sentences_of_each_kind():
    drawn = sentences.draw(1, 20)
    assert drawn == sentences.draw(1, 20)
    kinds = [kind for kind, _ in drawn]
    assert {kind: kinds.count(kind) for kind in kinds} == dict.fromkeys(sentences.by_kind(), 5)
