"""
A translator with the CTranslate2 engine, which needs no torch.

::

    translator = ExportedTranslator.load("exported/en-de")
    translator.translate(["A dog runs."])[0].text
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from heedful.errors import SettingError
from heedful.exchange.ctranslate2.engine import Engine, EngineHypothesis
from heedful.exchange.ctranslate2.record import ExportRecord
from heedful.exchange.ctranslate2.vocabulary import never_written, read_vocabularies
from heedful.exchange.ordinary_files import check_ordinary_files
from heedful.search.length import LengthLimit
from heedful.search.observer import SearchObserver
from heedful.search.settings import SearchOptions
from heedful.text.blanks import read_source
from heedful.text.reading.terms import Terms
from heedful.tokenization.tokenizer import END, Tokenizer
from heedful.translation.constraints import check_prefixes, read_constraints
from heedful.translation.engine import check_engine
from heedful.translation.reading import LongLines, TextReader, warn_of_loops, without_links
from heedful.translation.result import (
    Translation,
    between_blanks,
    decoded_translation,
    without_repeats,
)
from heedful.translation.sources import source_ids

Warn = Callable[[str], None]


class ExportedTranslator:
    """A translator for folders made by `heedful export --format ctranslate2`; `load` opens one."""

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        record: ExportRecord,
        vocabularies: tuple[list[str], list[str]],
    ) -> None:
        self.engine, self.tokenizer, self.record = engine, tokenizer, record
        self._source, self._target = vocabularies
        self._numbers = {token: number for number, token in enumerate(self._target)}

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        device: str = "auto",
        precision: str = "auto",
        threads: int = 0,
        reading: str | None = None,
    ) -> "ExportedTranslator":
        """Open an exported folder. `reading`: exact or text; if None, the exported run's value."""
        folder = Path(folder)
        check_ordinary_files(folder)
        record, tokenizer = ExportRecord.read(folder), Tokenizer.load(folder)
        record.check(folder, tokenizer)
        record = replace(record, reading=reading or record.reading)
        vocabularies = read_vocabularies(folder, {})
        target = vocabularies[1]
        never = never_written(len(target), tokenizer.target_size, record.search.forbidden_ids)
        engine = Engine(
            folder,
            end=target[END],
            forbidden=[target[number] for number in never],
            device=device,
            precision=precision,
            threads=threads,
        )
        return cls(engine, tokenizer, record, vocabularies)

    def translate(
        self,
        texts: Sequence[str],
        options: SearchOptions | None = None,
        *,
        target_prefix: Sequence[str] | None = None,
        force_phrases: Sequence[Sequence[str]] | None = None,
        avoid_phrases: Sequence[Sequence[str]] | None = None,
        probabilities: bool = False,
        attention: bool = False,
        alignments: bool = False,
        align_by: str = "",
        replace_unknown: bool | Mapping[str, str] = False,
        first_line: int = 1,
        glossary: Mapping[str, str] | None = None,
        protected: Sequence[str] | None = None,
        long_lines: LongLines = "split",
        warn: Warn | None = None,
        observer: SearchObserver | None = None,
    ) -> list[Translation]:
        """
        Translate lines as `Translator.translate` does; refuse options that CTranslate2 lacks.

        With a length penalty, a search stops when `beam` hypotheses are complete, as in
        CTranslate2; the `gnmt` penalty only reorders the complete hypotheses.
        """
        options = options or SearchOptions()
        check_engine(
            "ctranslate2",
            options,
            {
                "force-phrases": force_phrases,
                "avoid-phrases": avoid_phrases,
                "attention": attention,
                "alignments": alignments,
                "align-by": align_by,
                "replace-unknown": replace_unknown,
                "observer": observer,
            },
        )
        read = self.reader.read(texts, Terms.of(glossary, protected), long_lines)
        lines, numbers = read.rows, [first_line + line for line in read.lines]
        search = self.record.search
        settings = options.over(self.record.search_within)
        beginnings = read.spread("target_prefix", target_prefix, "")
        line_constraints = read_constraints(
            self.tokenizer,
            len(lines),
            target_prefix=beginnings,
            force_phrases=None,
            avoid_phrases=None,
            numbers=numbers,
            warn=warn,
        )
        longest = self.record.positions - int(self.record.source_end)
        setting = (
            "search.max_source_length"
            if search.max_source_length <= longest
            else "rows of positions"
        )
        ids = source_ids(
            self.tokenizer, lines, min(search.max_source_length, longest), warn, numbers, setting
        )
        rows = [row for row, line in enumerate(ids) if line]
        limits = self._limits(settings.limit, [len(ids[row]) for row in rows])
        begun = [line_constraints[row] for row in rows]
        check_prefixes(begun, limits, [numbers[row] for row in rows])
        sources = [[self._source[number] for number in ids[row]] for row in rows]
        prefixes = [[self._target[number] for number in constraint.prefix] for constraint in begun]
        searched = self.engine.search(sources, limits, settings, prefixes)
        results = [Translation("", 0.0, (), 0.0)] * len(lines)
        for row, source, hypotheses in zip(rows, sources, searched, strict=True):
            best = hypotheses[: settings.n_best]
            token_scores = self._token_scores(source, best) if probabilities else [()] * len(best)
            results[row] = self._translation(best, token_scores)
        written = self.reader.prefixes(lines, beginnings, numbers, warn)
        results = list(map(without_repeats, read.restored(results, written)))
        if warn is not None:
            warn_of_loops(results, first_line, warn)
        return list(map(between_blanks, map(without_links, results), texts))

    @cached_property
    def reader(self) -> TextReader:
        """The reader of source lines; this engine does not align words."""
        return TextReader(
            self.tokenizer,
            lambda lines: list(map(read_source, lines)),
            reads_text=self.record.reading == "text",
            longest=self.record.search_within.max_source_length,
            aligns=False,
        )

    def _token_scores(
        self, source: Sequence[str], hypotheses: Sequence[EngineHypothesis]
    ) -> list[tuple[float, ...]]:
        """Compute the log-probability of each token of a line's translations."""
        scored = self.engine.score(
            [source] * len(hypotheses), [hypothesis.tokens for hypothesis in hypotheses]
        )
        return [
            tuple(scores if hypothesis.ended else scores[:-1])
            for hypothesis, scores in zip(hypotheses, scored, strict=True)
        ]

    def _limits(self, limit: LengthLimit, lengths: Sequence[int]) -> list[int]:
        """Compute the length limit of each line from the options and the number of positions."""
        most = self.record.positions - 1
        if not limit.relative and limit.extra > most:
            raise SettingError(
                f"max-length must be at most {most:,} with this folder, one less than its number "
                f"of positions, but is {limit.extra:,}; export the run again with a larger value "
                "of --positions."
            )
        return [min(limit.tokens(length), most) for length in lengths]

    def _translation(
        self, hypotheses: Sequence[EngineHypothesis], token_scores: Sequence[tuple[float, ...]]
    ) -> Translation:
        """Convert the hypotheses of a line to a translation."""
        best, *others = map(self._to_translation, hypotheses, token_scores)
        return replace(best, alternatives=tuple(others))

    def _to_translation(
        self, hypothesis: EngineHypothesis, token_scores: tuple[float, ...]
    ) -> Translation:
        """Convert a hypothesis to a translation without alternatives."""
        ids = [self._numbers[token] for token in hypothesis.tokens]
        return decoded_translation(
            self.tokenizer, ids, hypothesis.score, hypothesis.log_probability, token_scores
        )
