"""Types of settings: numbers in a range, and text of a certain form."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from heedful.settings.search import PENALTY_FORM, SearchSetting


def written_as(pattern: str, rule: str) -> AfterValidator:
    """Return a check that refuses text that does not match `pattern`; the error states the rule."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(rule)
        return text

    return AfterValidator(check)


def number_as_text(value: object) -> object:
    """Accept ``max_length = 100`` in TOML without quotes."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def list_as_text(value: object) -> object:
    """Accept ``encoder_sharing = [1, 1, 2]`` in TOML, as the text ``1,1,2``."""
    if isinstance(value, list) and all(type(number) is int for number in value):
        return ",".join(map(str, value))
    return number_as_text(value)


def explained(setting: SearchSetting, more: str = "", **field: Any) -> Any:
    """
    Declare a search setting.

    `more`: text to append to the setting's help text. `field`: arguments of `Field` that replace
    those of the setting.
    """
    text = f"{setting.text} {more}".rstrip()
    own = {"description": text, "ge": setting.least, "le": setting.most}
    return Field(**own | field)


# Bounds that no model reaches. They keep the size of a tensor below torch's limit of 2^63 bytes.
Count = Annotated[int, Field(ge=1, le=10**12)]
Width = Annotated[int, Field(ge=1, le=1_000_000)]
MOST_LAYERS = 1000
Depth = Annotated[int, Field(ge=1, le=MOST_LAYERS)]
CountOrZero = Annotated[int, Field(ge=0)]
Norm = Literal["post", "pre", "pre-no-final"]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
Name = Annotated[str, written_as(r"[\w.+-]+", "must be letters, digits and . + - _")]
Language = Annotated[str, written_as(r"[\w-]*", "must be a code of letters, digits and - _")]
Device = Annotated[str, written_as(r"auto|cpu|cuda(:[0-9]+)?", "must be auto, cpu, cuda or cuda:N")]
LengthPenalty = Annotated[
    str,
    written_as(
        PENALTY_FORM,
        "must be gnmt:ALPHA, power:ALPHA or none, where ALPHA is a number from 0 to 10",
    ),
]
OutputLength = Annotated[
    str,
    BeforeValidator(number_as_text),
    written_as(
        r"input\+[0-9]{1,6}|[1-9][0-9]{0,5}",
        "must be input+N, or N above 0, where N is a whole number below a million",
    ),
]
Sharing = Annotated[
    str,
    BeforeValidator(list_as_text),
    written_as(
        r"([1-9][0-9]{0,3}(,[1-9][0-9]{0,3})*)?",
        "must be a number for each layer, with commas between numbers, such as 1,1,2,2",
    ),
]
Ids = Annotated[
    str,
    BeforeValidator(number_as_text),
    written_as(r"([0-9]+( [0-9]+)*)?", "must be whole numbers separated by spaces"),
]
