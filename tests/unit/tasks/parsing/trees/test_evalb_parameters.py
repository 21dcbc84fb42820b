"""Parameter files of EVALB."""

import pytest

from heedful.errors import TextError
from heedful.tasks.parsing.trees.evalb_parameters import COLLINS, EvalbParameters, read_parameters


def written(tmp_path, text):
    file = tmp_path / "my.prm"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_defaults_are_those_of_collins(corpora):
    assert read_parameters(corpora / "fixtures-evalb/COLLINS.prm") == COLLINS


def test_the_newer_file_deletes_more_and_names_quotes(corpora):
    new = read_parameters(corpora / "fixtures-evalb/new.prm")
    assert new.delete_labels == COLLINS.delete_labels | {"S1", "?", "!"}
    assert new.quote_labels == {"``", "''", "POS", "NN", "CD", "VBZ", ":"}


def test_a_file_begins_from_nothing(tmp_path):
    file = written(tmp_path, "# DELETE_LABEL TOP\n\n##\nLABELED 0\nEQ_WORD a b\nDELETE_WORD *\n")
    assert read_parameters(file) == EvalbParameters(
        delete_labels=frozenset(),
        delete_words=frozenset("*"),
        delete_labels_for_length=frozenset(),
        equivalent_labels=frozenset(),
        equivalent_words=frozenset((frozenset("ab"),)),
        labeled=False,
    )


def test_numbers_are_read_and_the_last_counts(tmp_path):
    file = written(tmp_path, "CUTOFF_LEN 7\nMAX_ERROR 3\nMAX_ERROR 0\nDEBUG 2\nLABELED 1\n")
    found = read_parameters(file)
    assert (found.cutoff, found.max_error, found.labeled) == (7, 0, True)


def test_pairs_count_as_equal_both_ways_and_no_further(tmp_path):
    found = read_parameters(written(tmp_path, "EQ_LABEL A B\nEQ_LABEL B C\nDELETE_LABEL C\n"))
    assert found.same_label("A", "B")
    assert found.same_label("B", "A")
    assert not found.same_label("A", "C")
    assert [label for label in "ABC" if found.deletes_phrase(label)] == ["B", "C"]
    assert not found.same_word("A", "B")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            "DELETE_LABELS TOP",
            r"the first word must be a parameter \(DELETE_LABEL, .*got “DELETE_LABELS”",
        ),
        ("DELETE_LABEL", "DELETE_LABEL must have one value, but got nothing"),
        ("DELETE_LABEL TOP S1", "one value, but got “TOP S1”"),
        ("EQ_LABEL ADVP", "EQ_LABEL must have two values, but got “ADVP”"),
        ("LABELED 2", "LABELED must be 0 or 1, but got “2”"),
        ("CUTOFF_LEN forty", "CUTOFF_LEN must be a whole number .*, but got “forty”"),
        ("MAX_ERROR -1", "MAX_ERROR must be a whole number .*, but got “-1”"),
        ("MAX_ERROR " + "9" * 5000, f"of at most 9 digits, but got “{'9' * 40}”"),
    ],
)
def test_what_is_no_parameter_is_named_with_its_line(tmp_path, line, reason):
    with pytest.raises(TextError, match=f"my.prm, line 2: .*{reason}; correct the file"):
        read_parameters(written(tmp_path, f"DEBUG 0\n{line}\n"))
