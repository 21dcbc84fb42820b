"""Numbers that a translation has changed."""

import re
import unicodedata
from collections import Counter

# Digits with separators of groups, fractions, times and dates.
_NUMBER = re.compile(r"\d+(?:[.,:/'’\u00a0\u202f\u2009]\d+)*")


def changed_numbers(source: str, target: str) -> tuple[str, ...]:
    """
    List the numbers of a source that its translation lacks.

    Separators differ between languages, so only digits are compared.

    >>> changed_numbers("23 dogs, 1,000.50 euros", "24 Hunde, 1.000,50 Euro")
    ('23',)
    """
    remaining = Counter(map(_digits, _NUMBER.findall(target)))
    changed = []
    for number in _NUMBER.findall(source):
        digits = _digits(number)
        if remaining[digits]:
            remaining[digits] -= 1
        else:
            changed.append(number)
    return tuple(changed)


def _digits(number: str) -> str:
    """Return the digits of a number, in whatever script, as ASCII."""
    return "".join(str(unicodedata.digit(sign)) for sign in number if sign.isdigit())
