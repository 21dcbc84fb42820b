"""
Every setting: its type, its range, its default, and one sentence of help.

Those of the model and of training have files of their own, `model.py` and `train.py`. The defaults
of `ModelConfig`, `TrainConfig` and `SearchConfig` are the paper's base model. The sentence below a
setting is its help text on the command line and its comment in a TOML file. A setting that is wrong
is a `SettingError` wherever it comes from, never pydantic's own error.
"""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator
from pydantic.fields import FieldInfo

from heedful.config.conditions import ActsIf, Conditions, acts, flat, idle_settings
from heedful.config.field_types import (
    Count,
    CountOrZero,
    Ids,
    Language,
    LengthPenalty,
    Name,
    OutputLength,
    Share,
)
from heedful.config.model import POOLED, ModelConfig
from heedful.config.parsing import ParsingConfig, parsing_clashes
from heedful.config.recurrent import ATTENTION
from heedful.config.recurrent import DECODER as RECURRENT_DECODER
from heedful.config.settings_table import SettingsTable, walk
from heedful.config.train import TrainConfig
from heedful.errors import SettingError


class DataConfig(SettingsTable):
    """Languages, subwords, and which pairs are kept."""

    table: ClassVar[str] = "data"

    source_language: Language = ""
    """Code of the source language. Empty means the ending of the source files."""
    target_language: Language = ""
    """Code of the target language. Empty means the ending of the target files."""
    vocabulary_size: Count = 37_000
    """Subwords in the vocabulary, of each language if it is not shared."""
    vocabulary_multiple: Count = 8
    """Pad the embedding with unused rows to a multiple of this."""
    subwords: Literal["bpe", "unigram", "character", "word"] = "bpe"
    """How text is split into subwords."""
    target_subwords: Annotated[
        Literal["as-source", "symbols"], ActsIf("data.shared_vocabulary", (False,))
    ] = "as-source"
    """How target text is split: like the source, or at spaces, for symbols such as brackets."""
    subword_sampling: Share = 0.0
    """Sample subwords anew in every epoch: BPE-dropout for bpe, alpha for unigram. 0 means off."""
    vocabulary_threshold: CountOrZero = 0
    """With given BPE codes: split subwords that occur less often in the text. 0 means none."""
    shared_vocabulary: bool = True
    """Whether both languages share one vocabulary."""
    max_length: Count = 256
    """Most subwords of a sentence; pairs with a longer one are dropped."""
    max_length_ratio: Annotated[float, Field(ge=1)] | None = None
    """Drop pairs whose length ratio is larger, longer side over shorter. None means no limit."""
    min_script_share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Drop pairs with a smaller share of letters in the language's script. None means any."""
    drop_duplicates: bool = False
    """Whether repeated pairs are dropped."""
    mixing_temperature: Annotated[float, Field(ge=1)] = 1.0
    """Sampling of corpora without weights: 1 in proportion to size, larger values more evenly."""


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
        RECURRENT_DECODER,
        ATTENTION,
        ActsIf("model.encoder", unless=POOLED),
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


class RunConfig(SettingsTable):
    """All settings of one run."""

    recipe: Name = "custom"
    """Recipe that these settings are based on."""
    reading: Literal["paper", "t2t", "own"] = "own"
    """Source of the details: the paper's text, the authors' code, or neither."""
    model: ModelConfig = ModelConfig()
    """The model."""
    data: DataConfig = DataConfig()
    """Text, subwords and cleaning."""
    train: TrainConfig = TrainConfig()
    """Training."""
    search: SearchConfig = SearchConfig()
    """How translations are found."""
    parsing: ParsingConfig = ParsingConfig()
    """Trees as the target."""

    @model_validator(mode="after")
    def _parsers_have_symbols(self) -> "RunConfig":
        """Check that the text of a parser is split as it has to be."""
        if wrong := list(parsing_clashes(self)):
            raise ValueError("; ".join(wrong))
        return self

    @model_validator(mode="after")
    def _one_table_needs_one_vocabulary(self) -> "RunConfig":
        """Check that tied embeddings of both languages have one vocabulary."""
        if self.model.tie_embeddings == "all" and not self.data.shared_vocabulary:
            raise ValueError(
                "`model.tie_embeddings` = all is one table for both languages and needs "
                "`data.shared_vocabulary` = true, but false came; share the vocabulary, or set "
                "`model.tie_embeddings` to output or none"
            )
        return self

    @model_validator(mode="after")
    def _idle_settings_have_their_defaults(self) -> "RunConfig":
        """Refuse a setting that would change nothing; files that hold its default can be read."""
        wrong = idle_settings(flat(self.to_dict()), setting_defaults(), setting_conditions())
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    def to_dict(self) -> dict[str, Any]:
        """Convert all settings to plain values, as ``config.json`` of a run folder stores them."""
        return self.model_dump(mode="json")

    @classmethod
    def from_dict(cls, values: Any) -> "RunConfig":
        """
        Build checked settings from plain values.

        Types are strict: text that looks like a number is not one.

        Raises `SettingError` if a setting is unknown or out of range; the message names each by its
        dotted name.
        """
        if not isinstance(values, Mapping):
            raise SettingError(f"settings must be tables of names and values, but {values!r} came")
        return cls(**values)

    def with_settings(
        self, settings: Mapping[str, Any], inherited: Mapping[str, Any] | None = None
    ) -> "RunConfig":
        """
        Return a changed copy, checked again as a whole.

        `inherited`: changes below `settings`.

        All changes are made before the check, so that dependent settings may change together. A
        setting that `settings` does not name and that no longer acts is reset to its default.

        Raises `SettingError` if a setting is unknown or out of range; the message names each by its
        dotted name.
        """
        values = self.to_dict()
        for name, value in {**(inherited or {}), **settings}.items():
            table, last = _table_of(name, values)
            if table is None:
                values[name] = value
            else:
                table[last] = value
        return self.from_dict(without_idle(values, given=flat(settings)))


def setting_fields() -> dict[str, FieldInfo]:
    """List all settings by their dotted names."""
    return {name: field for name, field, _ in walk(RunConfig)}


@cache
def setting_conditions() -> Conditions:
    """List the conditions of all settings that have one, those of their tables included."""
    return {name: conditions for name, _, conditions in walk(RunConfig) if conditions}


@cache
def setting_defaults() -> dict[str, Any]:
    """List the defaults of all settings by their dotted names."""
    return {name: field.default for name, field in setting_fields().items()}


def acting_settings(config: RunConfig) -> set[str]:
    """List the settings that act in a configuration, by their dotted names."""
    values, conditions = flat(config.to_dict()), setting_conditions()
    return {name for name in values if acts(name, values, conditions)}


def without_idle(values: dict[str, Any], given: Collection[str]) -> dict[str, Any]:
    """
    Reset settings that do not act and were not given, in place, and return them.

    `values`: tables of unchecked values. `given`: dotted names that are left alone, so that a
    check can refuse them.
    """
    known = {**setting_defaults(), **flat(values)}
    for name in setting_conditions():
        if name in given or acts(name, known, setting_conditions()):
            continue
        table, last = _table_of(name, values)
        if table is not None and last in table:
            table[last] = setting_defaults()[name]
    return values


def _table_of(name: str, values: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Find the table that holds a setting, and its name there; None if there is no such table."""
    table: Any = values
    *above, last = name.split(".")
    for part in above:
        table = table.get(part) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else None, last
