"""
Help text and range of each search setting, shared by all places that declare it.

These places are a recipe's table (`heedful.config.search`), `heedful.SearchOptions` with the flags
of commands, and bodies of requests (`heedful.serve.request_schemas`). This module does not import
pydantic, because the command line starts without it.
"""

from typing import NamedTuple


class SearchSetting(NamedTuple):
    """The help text of a setting, and the bounds of its value if it is a number."""

    text: str
    least: int | None = None
    most: int | None = None


# For each sentence, a step holds `beam` rows of the vocabulary's size in memory.
BEAM = SearchSetting(
    "Beam size: the number of hypotheses kept at each step; 1 is greedy search.", 1, 10_000
)
LENGTH_PENALTY = SearchSetting("Length penalty: gnmt:ALPHA (the paper's), power:ALPHA or none.")
PENALTY_FORM = r"none|(gnmt|power):(10(\.0+)?|[0-9](\.[0-9]+)?)"
"""Regular expression for a length penalty."""
# With a beta up to 10, scores stay finite.
COVERAGE_PENALTY = SearchSetting(
    "Beta of GNMT's coverage penalty, for recurrent decoders; 0 is off.", 0, 10
)
MAX_LENGTH = SearchSetting(
    "Maximum number of tokens of a translation, not counting the end symbol: N, or input+N "
    "for N more than the source."
)
MIN_LENGTH = SearchSetting(
    "Minimum number of tokens of a translation, not counting the end symbol; the maximum takes "
    "precedence.",
    0,
    1_000_000,
)
NO_REPEAT_NGRAM = SearchSetting("Forbid repeated n-grams of N subwords; 0 is off.", 0, 1_000_000)
