import pytest

from heedful.text.nouns import count_noun


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 lines"), (1, "1 line"), (2, "2 lines"), (12_345, "12,345 lines")]
)
def test_a_noun_agrees_with_its_number(number, text):
    assert count_noun(number, "line") == text
