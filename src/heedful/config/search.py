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
        raise ValueError(f"must name rules of plugins that are loaded, but none has {unknown[0]!r}")
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
    """EOS finishes a hypothesis if it ranks within the best `beam` candidates, or 2 x `beam`."""
    stop: Literal[
        "when-none-can-win",
        "when-beam-finished",
        "as-ctranslate2",
        "as-transformers",
        "as-joey",
        "as-opennmt",
    ] = "when-none-can-win"
    """Stop when no open hypothesis can win, when `beam` have finished, or as another toolkit."""
    length_limit_policy: Literal["cut", "end", "force", "keep"] = "cut"
    """At the length limit: cut and rank last, end at no cost, end at the cost of EOS, or keep."""
    renormalise: bool = False
    """Whether the probabilities of the allowed subwords are normalized to a sum of one."""
    forbidden_ids: Ids = ""
    """Ids that are never written, separated by spaces; padding and start symbol always belong."""
    min_length: Annotated[int, explained(MIN_LENGTH)] = 0
    max_length: Annotated[OutputLength, explained(MAX_LENGTH)] = "input+50"
    no_repeat_ngram: Annotated[int, explained(NO_REPEAT_NGRAM)] = 0
    rules: Annotated[str, AfterValidator(_check_rules)] = ""
    """Rules of plugins that every search keeps, by their names, separated by spaces."""
    max_source_length: Count = 1024
    """Maximum subwords of a source line; a longer one is cut with a warning."""
