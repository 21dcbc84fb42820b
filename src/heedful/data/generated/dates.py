"""
English dates in words, and the same dates in ISO 8601 format.

::

    “Sunday, the twenty-third of January, two thousand and five”  →  “2005-01-23”

No date occurs in two parts of the text (training, validation, test). A model must therefore read
the day, month and year of dates that it has not seen. A day of the week adds no information.
"""

import random
from collections.abc import Iterator
from datetime import date

from heedful.data.text_parts import Pair

LANGUAGES = ("words", "iso")
FIRST, LAST = date(1900, 1, 1), date(2099, 12, 31)
_NUMBERS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen
    twenty thirty forty fifty sixty seventy eighty ninety
"""
_ONES, _TENS = _NUMBERS.split()[:20], _NUMBERS.split()[20:]
_ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth"}
_ORDINALS |= {"eight": "eighth", "nine": "ninth", "twelve": "twelfth"}
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def sample_dates(seed: int) -> Iterator[Pair]:
    """Draw all 73,049 dates of two centuries in random order, each written in one of many ways."""
    draw = random.Random(seed)
    days = [*range(FIRST.toordinal(), LAST.toordinal() + 1)]
    draw.shuffle(days)
    for day in map(date.fromordinal, days):
        yield _say(day, draw), day.isoformat()


def number_words(number: int) -> str:
    """
    Spell out a number below a hundred.

    >>> number_words(7), number_words(40), number_words(98)
    ('seven', 'forty', 'ninety-eight')
    """
    if number < 20:
        return _ONES[number]
    ten, unit = divmod(number, 10)
    return f"{_TENS[ten - 2]}-{_ONES[unit]}" if unit else _TENS[ten - 2]


def ordinal_words(number: int) -> str:
    """
    Spell out an ordinal number below a hundred.

    >>> ordinal_words(3), ordinal_words(20), ordinal_words(31)
    ('third', 'twentieth', 'thirty-first')
    """
    tens, hyphen, last = number_words(number).rpartition("-")
    ending = _ORDINALS.get(last, f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")
    return f"{tens}{hyphen}{ending}"


def ordinal_digits(number: int) -> str:
    """
    Write an ordinal number below a hundred in digits.

    >>> ordinal_digits(3), ordinal_digits(12), ordinal_digits(31)
    ('3rd', '12th', '31st')
    """
    return f"{number}{'th' if 10 < number < 20 else _ENDINGS.get(number % 10, 'th')}"


def year_words(year: int) -> list[str]:
    """
    Spell out a year from 1900 to 2099 in the usual ways.

    >>> year_words(1905)
    ['nineteen oh five', 'nineteen hundred and five']
    >>> year_words(2012)
    ['twenty twelve', 'two thousand and twelve', 'two thousand twelve']
    """
    century, rest = divmod(year, 100)
    base = "nineteen hundred" if century == 19 else "two thousand"
    if not rest:
        return [base]
    ways = [f"{base} and {number_words(rest)}"]
    if century == 20:
        ways.append(f"{base} {number_words(rest)}")
    if rest >= 10 or century == 19:
        spoken = f"oh {number_words(rest)}" if rest < 10 else number_words(rest)
        ways.insert(0, f"{number_words(century)} {spoken}")
    return ways


def _say(day: date, draw: random.Random) -> str:
    """Write a date in one of many ways."""
    # strftime would depend on the language of the system
    month = draw.choice(_MONTHS[day.month - 1])
    weekday = _WEEKDAYS[day.weekday()]
    words, digits = ordinal_words(day.day), ordinal_digits(day.day)
    year = str(day.year) if draw.random() < 0.4 else draw.choice(year_words(day.year))
    text = draw.choice(
        (
            f"{month} {draw.choice((words, digits, str(day.day)))}, {year}",
            f"{draw.choice((digits, str(day.day)))} {month} {year}",
            f"the {draw.choice((words, digits))} of {month}, {year}",
            f"the {words} day of {month} {year}",
        )
    )
    if draw.random() < 0.3:
        text = f"{weekday}, {text}"
    return text.lower() if draw.random() < 0.2 else text


_MONTHS = tuple(
    tuple(names.split())
    for names in (
        "January Jan. Jan",
        "February Feb. Feb",
        "March Mar. Mar",
        "April Apr. Apr",
        "May",
        "June",
        "July",
        "August Aug. Aug",
        "September Sept. Sep",
        "October Oct. Oct",
        "November Nov. Nov",
        "December Dec. Dec",
    )
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
