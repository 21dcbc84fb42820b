"""The settings of search."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator

from heedful.settings.conditions import ActsIf
from heedful.settings.field_types import Count, Ids, LengthPenalty, OutputLength, explained
from heedful.settings.registries import unknown_rules
from heedful.settings.search import (
    BEAM,
    COVERAGE_PENALTY,
    LENGTH_PENALTY,
    MAX_LENGTH,
    MIN_LENGTH,
    NO_REPEAT_NGRAM,
)
from heedful.settings.table import SettingsTable


def _check_rules(names: str) -> str:
    """Refuse names of rules that are not registered."""
    if unknown := unknown_rules(names):
        raise ValueError(
            f"must name rules of loaded plugins, but no loaded plugin has a rule {unknown[0]!r}"
        )
    return names


class SearchConfig(SettingsTable):
    """How translations are found."""

    table: ClassVar[str] = "search"

    beam: Annotated[int, explained(BEAM)] = 4
    length_penalty: Annotated[LengthPenalty, explained(LENGTH_PENALTY)] = "gnmt:0.6"
    coverage_penalty: Annotated[
        float,
        explained(COVERAGE_PENALTY),
        ActsIf("model.decoder", families_with="coverage"),
        ActsIf("model.encoder", families_without="one-state"),
        ActsIf("search.beam", unless=(1,)),
    ] = 0.0
    eos_candidates: Literal["beam", "twice"] = "beam"
    """EOS ends a hypothesis if EOS is among the best `beam` candidates, or the best 2 x `beam`."""
    stop: Literal[
        "when-none-can-win",
        "when-beam-finished",
        "as-ctranslate2",
        "as-transformers",
        "as-joey",
        "as-opennmt",
    ] = "when-none-can-win"
    """Stop when no open hypothesis can win, when `beam` hypotheses end, or like another toolkit."""
    length_limit_policy: Literal["cut", "end", "force", "keep"] = "cut"
    """At the length limit: cut (ranks last), end (free EOS), force (scored EOS), keep (no EOS)."""
    renormalise: bool = False
    """Whether the probabilities of the allowed subwords are normalized to sum to one."""
    forbidden_ids: Ids = ""
    """Space-separated ids that are never generated, besides padding and the start symbol."""
    min_length: Annotated[int, explained(MIN_LENGTH)] = 0
    max_length: Annotated[OutputLength, explained(MAX_LENGTH)] = "input+50"
    no_repeat_ngram: Annotated[int, explained(NO_REPEAT_NGRAM)] = 0
    rules: Annotated[str, AfterValidator(_check_rules)] = ""
    """Names of plugins' search rules that every search applies, separated by spaces."""
    max_source_length: Count = 1024
    """Maximum subwords per source line; longer lines are split, or cut if data.reading is exact."""
