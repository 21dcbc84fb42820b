import csv
from pathlib import Path

import jaxtyping
import pytest

from heedful.errors import ArgumentError, TextError
from heedful.text.sentence_pairs import file_list, pairs_in_memory, sentence_pairs

BOTH = "score needs either files, as `source` and `target`, or sentences, as `pairs`"


def test_pairs_come_from_files_or_from_memory(tmp_path):
    for name, lines in (("a.en", "the dog\na cat\n"), ("a.fr", "le chien\nun chat\n")):
        (tmp_path / name).write_text(lines, "utf-8")
    expected = [("the dog", "le chien"), ("a cat", "un chat")]
    files = tmp_path / "a.en", [tmp_path / "a.fr"]
    assert [*sentence_pairs("score", *files, None)] == expected
    assert [*sentence_pairs("score", None, None, iter(expected))] == expected
    assert [*pairs_in_memory([["the dog", "le chien"]])] == expected[:1]


def test_columns_of_a_table_are_found_by_the_languages():
    rows = csv.DictReader(["fr,en", "le chien,the dog"])
    assert [*sentence_pairs("score", None, None, rows, None, ("en", "fr"))] == [
        ("the dog", "le chien")
    ]


@pytest.mark.parametrize("given", [(None, None, None), ("a", None, None), ("a", "b", [("a", "b")])])
def test_both_and_neither_are_refused(given):
    with pytest.raises(ArgumentError, match=BOTH):
        sentence_pairs("score", *given)


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(TextError, match=r"nope\.en"):
        sentence_pairs("score", "nope.en", "nope.fr", None)


@pytest.mark.parametrize("entry", ["ab", ("a",), ("a", None), 5, {"a": "b"}])
def test_what_is_no_pair_is_refused_with_its_number(entry):
    jaxtyping.config.update("jaxtyping_disable", True)  # a user has no such checks
    with pytest.raises(ArgumentError, match="pair 1 is "):
        list(pairs_in_memory([("a", "b"), entry]))


def test_one_file_or_several_are_listed():
    assert file_list("a") == ["a"]
    assert file_list([Path("a"), "b"]) == ["a", "b"]
