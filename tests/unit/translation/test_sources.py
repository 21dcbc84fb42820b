import pytest

from heedful.errors import TextError
from heedful.tokenization.tokenizer import Tokenizer
from heedful.translation.sources import check_ids, source_ids


@pytest.fixture
def tokenizer(tmp_path) -> Tokenizer:
    file = tmp_path / "text"
    file.write_text("a dog\nthe cat\n" * 5, encoding="utf-8")
    languages = {"source_language": "en", "target_language": "de"}
    options = {"kind": "character", "vocabulary_size": 30, "shared": True, "seed": 1}
    return Tokenizer.train([file], [file], **options, **languages)


def test_lines_become_ids_and_blank_ones_none(tokenizer):
    found = source_ids(tokenizer, ["a dog", " \t", ""], 99, None)
    assert found == [tokenizer.encode_source(["a dog"])[0], [], []]


def test_a_long_line_is_cut_and_named(tokenizer):
    said: list[str] = []
    found = source_ids(tokenizer, ["a cat", "a dog " * 9], 7, said.append, lines=[11, 12])
    assert [len(row) for row in found] == [6, 7]
    assert said == [
        "line 12 has 55 subwords and was cut to the first 7 (search.max_source_length)."
    ]
    assert len(source_ids(tokenizer, ["a dog " * 9], 7, None)[0]) == 7


def test_text_in_unknown_letters_is_warned_of(tokenizer):
    said: list[str] = []
    source_ids(tokenizer, ["жук"], 99, said.append)
    assert len(said) == 1


def test_numbers_beyond_a_vocabulary_are_refused():
    check_ids([0, 9], [4], (10, 5))
    for source, target, told in (
        ([10], [4], "`source` must hold ids from 0 to 9"),
        ([0], [-1], "`targ"),
    ):
        with pytest.raises(TextError, match=told):
            check_ids(source, target, (10, 5))
