"""The settings of constituency parsing."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from heedful.settings.conditions import ActsIf
from heedful.settings.table import SettingsTable

PARSER = ActsIf("parsing.linearisation", unless=(None,))


class ParsingConfig(SettingsTable):
    """Settings of constituency parsing: `heedful parse`."""

    table: ClassVar[str] = "parsing"

    linearisation: Literal["vinyals", "t2t"] | None = None
    """How trees are written: each word as XX, or as its part of speech. None means no parser."""
    constrained: Annotated[bool, PARSER] = True
    """Whether the search can write only trees of the given words."""
    longest_chain: Annotated[
        Annotated[int, Field(ge=1, le=100)], PARSER, ActsIf("parsing.constrained", (True,))
    ] = 10
    """Maximum number of phrases opened in a row; the Penn Treebank's sample needs 6, CRAFT 8."""
    word_numbers: Annotated[Annotated[int, Field(ge=2, le=1000)] | None, PARSER] = None
    """Words are numbered modulo this value on both sides. None means that they have no numbers."""
    next_word: Annotated[bool, PARSER] = False
    """Whether the decoder reads the encoder's state of the next word."""
    lower_case: Annotated[bool, PARSER] = False
    """Whether words are read in lower case."""


PARSER_SETTINGS: dict[str, object] = {
    "parsing.linearisation": "vinyals",
    "model.tie_embeddings": "none",
    "data.reading": "exact",
    "data.shared_vocabulary": False,
    "data.target_subwords": "symbols",
    "data.character_coverage": 1.0,
    "data.max_length": 512,
    "search.max_length": "input+300",  # Vaswani et al. 2017, section 6.3
    "train.best_by": "f1",
}
"""The settings that turn the recipe of a translator into the recipe of a parser."""


def parsing_clashes(settings: Mapping[str, Any]) -> Iterator[str]:
    """List conflicting settings with advice. `settings`: all settings by their dotted names."""
    if settings["parsing.linearisation"] is None:
        if settings["train.best_by"] == "f1":
            yield (
                "`train.best_by` = f1 compares trees and needs `parsing.linearisation`, but it "
                "is not set; set `train.best_by` to bleu or loss"
            )
        return
    if settings["data.augment"]:
        yield (
            "`data.augment` must be empty for a parser, because it would change the words in "
            f"trees, but got {settings['data.augment']!r}"
        )
    target = settings["data.target_subwords"]
    if settings["data.shared_vocabulary"]:
        yield (
            "`data.shared_vocabulary` must be false for a parser, whose words and symbols have "
            "nothing in common, but got true"
        )
    elif target != "symbols":
        yield f"`data.target_subwords` must be symbols for a parser, but got {target}"
    if not settings["parsing.next_word"]:
        return
    numbers = settings["parsing.word_numbers"]
    if numbers is not None:
        yield (
            "`parsing.word_numbers` must be none with `parsing.next_word`, which needs no "
            f"numbers to find words, but got {numbers}"
        )
    if settings["data.subwords"] == "word":
        yield (
            "`data.subwords` must be bpe, unigram or character with `parsing.next_word`, which "
            "counts words by their first subwords, but got `word`, which can merge unknown words"
        )
