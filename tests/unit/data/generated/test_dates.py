"""Dates beside a reader of dates that shares no table with their generator."""

import re
from datetime import date
from itertools import islice

import pytest

from heedful.data.generated.dates import (
    ordinal_digits,
    ordinal_words,
    sample_dates,
    year_words,
)

NUMBERS = {
    word: number
    for number, words in enumerate(
        """
        zero;one first;two second;three third;four fourth;five fifth;six sixth;seven seventh
        eight eighth;nine ninth;ten tenth;eleven eleventh;twelve twelfth;thirteen thirteenth
        fourteen fourteenth;fifteen fifteenth;sixteen sixteenth;seventeen seventeenth
        eighteen eighteenth;nineteen nineteenth;twenty twentieth
        """.strip().replace("\n", ";").split(";")
    )
    for word in words.split()
} | {
    "thirty": 30, "thirtieth": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
    "eighty": 80, "ninety": 90, "oh": 0, "and": 0,
}  # fmt: skip
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


def number(word):
    """Read a number in words or digits, ordinal or not."""
    digits = re.fullmatch(r"(\d+)(st|nd|rd|th)?", word)
    return int(digits[1]) if digits else sum(NUMBERS[part] for part in word.split("-"))


def year_of(words):
    if words[0].isdigit():
        return int(words[0])
    if words[1:2] == ["thousand"]:
        return 1000 * NUMBERS[words[0]] + sum(map(number, words[2:]))
    rest = [word for word in words[1:] if word != "hundred"]
    return 100 * NUMBERS[words[0]] + sum(map(number, rest))


def read(text):
    """Read a date; a day of the week must be its own."""
    words = [
        word for word in re.findall(r"[\w-]+", text.lower()) if word not in ("the", "of", "day")
    ]
    weekday = words.pop(0) if words[0].endswith("day") else None
    place = next(index for index, word in enumerate(words) if word[:3] in MONTHS)
    month = MONTHS.index(words.pop(place)[:3]) + 1
    found = date(year_of(words[1:]), month, number(words[0]))
    assert weekday in (None, found.strftime("%A").lower())
    return found


def test_every_date_is_what_its_words_say():
    drawn = [*islice(sample_dates(seed=2), 3000)]
    for words, iso in drawn:
        assert read(words).isoformat() == iso, words
    assert len({iso for _, iso in drawn}) == len(drawn)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_seed_draws_one_list_of_all_dates(seed):
    drawn = [iso for _, iso in sample_dates(seed)]
    assert len({*drawn}) == len(drawn) == 73_049
    assert (min(drawn), max(drawn)) == ("1900-01-01", "2099-12-31")
    assert [*islice(sample_dates(seed), 9)] == [*islice(sample_dates(seed), 20)][:9]


def test_numbers_and_years_as_they_are_said():
    days = (1, 2, 3, 4, 5, 8, 9, 11, 12, 13, 20, 21, 22, 30, 31)
    assert " ".join(map(ordinal_words, days)) == (
        "first second third fourth fifth eighth ninth eleventh twelfth thirteenth twentieth "
        "twenty-first twenty-second thirtieth thirty-first"
    )
    assert " ".join(map(ordinal_digits, days)) == (
        "1st 2nd 3rd 4th 5th 8th 9th 11th 12th 13th 20th 21st 22nd 30th 31st"
    )
    assert year_words(1900) == ["nineteen hundred"]
    assert year_words(2000) == ["two thousand"]
    assert year_words(1998) == ["nineteen ninety-eight", "nineteen hundred and ninety-eight"]
    assert year_words(2005) == ["two thousand and five", "two thousand five"]


def test_words_and_digits_capitals_and_weekdays_all_occur():
    text = [words for words, _ in islice(sample_dates(seed=1), 400)]
    assert sum(words.islower() for words in text) > 40
    assert sum(bool(re.search(r"\d{4}", words)) for words in text) > 100
    assert sum("day, " in words for words in text) > 60
    assert sum("first" in words for words in text) > 5
