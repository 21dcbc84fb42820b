import pytest

from heedful.text.reading.numbers import changed_numbers


@pytest.mark.parametrize(
    ("source", "target", "changed"),
    [
        ("in 2016", "en 2016", ()),
        ("in 2016, 23 men", "en 2011, 23 hommes", ("2016",)),
        ("1,000.50 euros at 10:30", "1.000,50 Euro um 10.30", ()),
        ("1\u202f000", "1000", ()),
        ("2 and 2", "2", ("2",)),
        ("٢٣", "23", ()),
        ("no number", "7", ()),
    ],
)
def test_numbers_that_a_translation_lacks_are_listed(source, target, changed):
    assert changed_numbers(source, target) == changed
