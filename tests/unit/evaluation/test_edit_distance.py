import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heedful.evaluation.edit_distance import edit_distance
from tests.support.edits import plain_edit_distance

words = st.text("abcd", max_size=9)


@given(words, words)
@example("ab" * 40, "ba" * 70)  # more than one machine word of bits
def test_edits_are_those_of_the_table(text, reference):
    assert edit_distance(text, reference) == plain_edit_distance(text, reference)


@pytest.mark.parametrize(
    ("text", "reference", "edits"),
    [
        ("", "", 0),
        ("", "abc", 3),
        ("abc", "", 3),
        ("kitten", "sitting", 3),
        ("intention", "execution", 5),
        ("flaw", "lawn", 2),
        ("とうきょう", "きょうと", 3),
        ("2005-11-23", "2005-12-23", 1),
    ],
)
def test_known_distances(text, reference, edits):
    assert edit_distance(text, reference) == edits
