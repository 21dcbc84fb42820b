"""Types of settings: numbers in a range, and text of a form."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field


def _written(pattern: str, rule: str) -> AfterValidator:
    """Check that text has the form of `pattern`, or raise an error with the rule."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(rule)
        return text

    return AfterValidator(check)


def _number_as_text(value: object) -> object:
    """Accept ``max_length = 100`` in TOML without quotes."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Count = Annotated[int, Field(ge=1)]
CountOrZero = Annotated[int, Field(ge=0)]
Norm = Literal["post", "pre", "pre-no-final"]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
Name = Annotated[str, _written(r"[\w.+-]+", "must be letters, digits and . + - _")]
Language = Annotated[str, _written(r"[\w-]*", "must be a code of letters, digits and - _")]
Device = Annotated[str, _written(r"auto|cpu|cuda(:[0-9]+)?", "must be auto, cpu, cuda or cuda:N")]
LengthPenalty = Annotated[
    str,
    _written(
        r"none|(gnmt|power):(10(\.0+)?|[0-9](\.[0-9]+)?)",
        "must be gnmt:ALPHA, power:ALPHA or none, where ALPHA is a number to 10, such as 0.6",
    ),
]
OutputLength = Annotated[
    str,
    BeforeValidator(_number_as_text),
    _written(
        r"input\+[0-9]{1,6}|[1-9][0-9]{0,5}",
        "must be input+N or N, where N is a whole number below a million",
    ),
]
Ids = Annotated[
    str,
    BeforeValidator(_number_as_text),
    _written(r"([0-9]+( [0-9]+)*)?", "must be whole numbers with spaces between"),
]
