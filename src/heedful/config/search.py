"""The settings of search."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from heedful.settings.conditions import ActsIf
from heedful.settings.field_types import Count, CountOrZero, Ids, LengthPenalty, OutputLength
from heedful.settings.table import SettingsTable


class SearchConfig(SettingsTable):
    """How translations are found."""

    table: ClassVar[str] = "search"

    beam: Annotated[int, Field(ge=1, le=10_000)] = 4
    """Beam size: hypotheses kept at every step."""
    length_penalty: LengthPenalty = "gnmt:0.6"
    """Length penalty: gnmt:ALPHA (the paper), power:ALPHA or none."""
    coverage_penalty: Annotated[
        float,
        Field(ge=0, le=10),
        ActsIf("model.decoder", families_with="coverage"),
        ActsIf("model.encoder", families_without="one-state"),
        ActsIf("search.beam", unless=(1,)),
    ] = 0.0
    """Beta of GNMT's coverage penalty, for source positions with little attention; 0 is off."""
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
    """Whether the probabilities of the allowed subwords are normalised to a sum of one."""
    forbidden_ids: Ids = ""
    """Ids that are never written, separated by spaces; padding and start symbol always belong."""
    min_length: CountOrZero = 0
    """Fewest subwords of a translation; `max_length` wins if the two conflict."""
    max_length: OutputLength = "input+50"
    """Most subwords of a translation: input+N or N, without the end symbol."""
    max_source_length: Count = 1024
    """Most subwords of a source line; a longer one is cut with a warning."""
