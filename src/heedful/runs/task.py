"""The task of a run: how it reads text, extends the model, limits searches and scores outputs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch

from heedful.config.schema import RunConfig
from heedful.evaluation.validation import ValidationScorer
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.search.rules import DecodingRule
from heedful.settings.registries import METRICS
from heedful.text.blanks import read_source, read_target
from heedful.text.reading.characters import read_source_characters, read_target_characters
from heedful.tokenization.tokenizer import Tokenizer
from heedful.visualise.record import Phrase

Scorer = Callable[[Sequence[str]], dict[str, float | str]]


@dataclass(frozen=True)
class RunTask:
    """The translation task; the other tasks are subclasses (`heedful.tasks`)."""

    folder: Path
    """Folder of the run, for messages."""
    config: RunConfig
    tokenizer: Tokenizer
    is_verbatim: ClassVar[bool] = False
    """Whether lines are read unchanged; if not, outputs get the white space around the source."""
    is_restricted: ClassVar[bool] = False
    """Whether rules of the task may forbid every output."""

    def source_line(self, sentence: str) -> str:
        """Convert a user's sentence to a source line."""
        return sentence

    def read_sources(self, lines: Sequence[str]) -> list[str]:
        """Convert source lines to the text that the model reads."""
        is_text = self.config.data.reading == "text"
        return list(map(read_source_characters if is_text else read_source, lines))

    def read_targets(self, lines: Sequence[str]) -> list[str]:
        """Convert existing translations to the text that the model reads."""
        is_text = self.config.data.reading == "text"
        return list(map(read_target_characters if is_text else read_target, lines))

    def rules(
        self, lines: Sequence[str], limits: Sequence[int], device: torch.device
    ) -> list[DecodingRule]:
        """
        Collect the search rules of the task for some source lines.

        Raises `TextError` for a line that the task cannot read, or if the limit is too short for
        the output that the rules require.
        """
        del lines, limits, device
        return []

    def has_room(self, line: str, limit: int) -> bool:
        """Return whether a limit allows the output that the rules require."""
        del line, limit
        return True

    def complete(self, model: EncoderDecoder) -> None:
        """Add the parts that a model of this task has in addition to its encoder and decoder."""

    def scorer(self, references: Sequence[str]) -> Scorer:
        """Create a scorer for validation, with BLEU and the metric that `train.best_by` names."""
        return self.text_scorer(references, "bleu")

    def text_scorer(self, references: Sequence[str], metric: str) -> Scorer:
        """Create a text scorer for a metric, and for `train.best_by` if it also scores text."""
        names = dict.fromkeys((metric, self.config.train.best_by))
        text_metrics = [name for name in names if METRICS[name].score]
        return ValidationScorer(references, self.config.data.target_language, text_metrics)

    def phrases(
        self, target: Sequence[int], pieces: Sequence[str], mark: str
    ) -> tuple[Phrase, ...]:
        """
        Find the phrases of an output, for plots of attention.

        `pieces`: tokens of the source without the end symbol. `mark`: the character that begins a
        word in the pieces.
        """
        del target, pieces, mark
        return ()
