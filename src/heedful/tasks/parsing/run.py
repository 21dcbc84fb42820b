"""A run that parses: its symbols, the rules of its searches, its model and its scores."""

from collections.abc import Sequence
from typing import ClassVar

import torch

from heedful.alignment.words import SPACE
from heedful.errors import SettingError, TextError
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.runs.task import RunTask, Scorer
from heedful.search.rules import DecodingRule
from heedful.tasks.parsing.config import ParsingConfig
from heedful.tasks.parsing.constraints import (
    CLOSE,
    OPEN,
    OTHER,
    WORD,
    TreeSymbols,
    WellFormedTrees,
    fewest_symbols,
)
from heedful.tasks.parsing.next_word import NextWord
from heedful.tasks.parsing.phrases import phrases_of
from heedful.tasks.parsing.trees.linearize import (
    Linearization,
    SymbolLabels,
    symbols_f1,
    word_number,
)
from heedful.tasks.parsing.trees.sentence import is_numbered, join_words, split_words
from heedful.tokenization.special_symbols import SPECIAL_IDS
from heedful.tokenization.tokenizer import END
from heedful.visualise.record import Phrase


class ParserRun(RunTask):
    """A run that parses."""

    is_verbatim: ClassVar[bool] = True  # thin spaces may be part of words
    is_restricted: ClassVar[bool] = True

    @property
    def parsing(self) -> ParsingConfig:
        """The parsing settings of the run."""
        return self.config.part(ParsingConfig)

    @property
    def form(self) -> Linearization:
        """The form in which the run writes trees."""
        return self.parsing.linearisation or "vinyals"

    @property
    def symbols(self) -> TreeSymbols:
        """The role of each symbol of the target vocabulary in a tree."""
        pieces = self.tokenizer.pieces_target(range(self.tokenizer.target_size))
        labels = SymbolLabels(pieces, self.form)
        numbers = {label: number for number, label in enumerate(labels.closes.values())}
        kinds, numbered = [OTHER] * len(pieces), [-1] * len(pieces)
        for i, piece in enumerate(pieces[len(SPECIAL_IDS) :], start=len(SPECIAL_IDS)):
            if piece in labels.opens:
                kinds[i], numbered[i] = OPEN, numbers[labels.opens[piece]]
            elif piece in labels.closes:
                kinds[i], numbered[i] = CLOSE, numbers[labels.closes[piece]]
            else:
                kinds[i], numbered[i] = WORD, word_number(piece)
        return TreeSymbols(tuple(kinds), tuple(numbered), self.parsing.word_numbers)

    def source_line(self, sentence: str) -> str:
        """Write words in lower case or with numbers, if the settings of the run say so."""
        words = split_words(sentence)
        return join_words(words, self.parsing.lower_case, self.parsing.word_numbers)

    def read_sources(self, lines: Sequence[str]) -> list[str]:
        """Return the lines unchanged, because `source_line` has prepared them."""
        return list(lines)

    def rules(
        self, lines: Sequence[str], limits: Sequence[int], device: torch.device
    ) -> list[DecodingRule]:
        """
        Return the rule that allows only trees of the words; no rule if the search is unconstrained.

        Raises `TextError` if a limit is too small for a tree of the words. It is also raised if the
        words have no numbers although the model reads numbered words.
        """
        if not self.parsing.constrained:
            return []
        words = [self._count_words(line) for line in lines]
        for line, count, limit in zip(lines, words, limits, strict=True):
            if self.parsing.word_numbers is not None and not is_numbered(line):
                raise TextError(
                    f"{self.folder} is a parser that reads numbered words, but got “{line[:60]}”; "
                    "use `heedful parse predict`, which numbers them."
                )
            if fewest_symbols(count) > limit:
                raise TextError(
                    f"a tree of {count:,} words has at least {fewest_symbols(count):,} symbols, "
                    f"but search.max_length allows {limit:,} for “{line[:60]}”; raise "
                    "search.max_length."
                )
        return [
            WellFormedTrees(self.symbols, words, limits, END, self.parsing.longest_chain, device)
        ]

    def has_room(self, line: str, limit: int) -> bool:
        """Return whether the smallest tree of the words fits within the limit."""
        return not self.parsing.constrained or fewest_symbols(self._count_words(line)) <= limit

    def complete(self, model: EncoderDecoder) -> None:
        """Add an input from the next word to the decoder, if `parsing.next_word` is true."""
        if not self.parsing.next_word:
            return
        if self.tokenizer.kind not in ("bpe", "unigram", "character"):
            raise SettingError(
                "`parsing.next_word` needs sentencepiece subwords, which mark the first subword "
                f"of each word, but the tokenizer is of kind {self.tokenizer.kind}; set "
                "parsing.next_word=false or train a sentencepiece tokenizer."
            )
        source, target = model.embed_source.weight.size(0), model.embed_target.weight.size(0)
        begins = torch.zeros(source, dtype=torch.bool)
        for i, piece in enumerate(self.tokenizer.pieces_source(range(self.tokenizer.source_size))):
            begins[i] = piece.startswith(SPACE)
        kinds = torch.full((target,), OTHER)
        kinds[: self.tokenizer.target_size] = torch.tensor(self.symbols.kinds)
        width = self.config.model.d_model
        next_word = NextWord(model.encoder.width, width, begins, kinds == WORD)
        model.read_with("next_word", next_word)

    def scorer(self, references: Sequence[str]) -> Scorer:
        """Create the scorer for validations: F1, exact match and the metric of `train.best_by`."""
        score_text = self.text_scorer(references, "exact_match")

        def score(outputs: Sequence[str]) -> dict[str, float | str]:
            return {"f1": symbols_f1(outputs, references, self.form), **score_text(outputs)}

        return score

    def phrases(
        self, target: Sequence[int], pieces: Sequence[str], mark: str
    ) -> tuple[Phrase, ...]:
        """Find the phrases of a linearized tree."""
        return phrases_of(self.symbols, target, pieces, mark)

    def _count_words(self, line: str) -> int:
        """Count the words of a source line, in which numbers may precede the words."""
        parts = 1 if self.parsing.word_numbers is None else 2
        return len(split_words(line)) // parts
