"""
A trained run that translates, scores and shows its attention.

::

    translator = Translator.load("runs/en-de")
    translator.translate("A dog runs.").text
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import Any, Literal, NoReturn, overload

from heedful.arguments import Files, check_counts, checked, read_pairs, read_texts, with_fields_of
from heedful.data.length_batches import by_length
from heedful.errors import ArgumentError
from heedful.machine.forks import Turns, in_turn
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.plugins import load_plugins
from heedful.runs.run import Run
from heedful.search.coverage import check_coverage
from heedful.search.ensemble import Ensemble
from heedful.search.hypothesis import Hypothesis
from heedful.search.observer import SearchObserver, offset_sentence
from heedful.search.search import run_search
from heedful.search.settings import SearchOptions
from heedful.text.reading.terms import Terms
from heedful.translation.aligner import Aligner
from heedful.translation.attention_of_pairs import AttentionOfPairs
from heedful.translation.batches import mean_scores, search_batches
from heedful.translation.constraints import by_line, check_prefixes, read_constraints, warn_missing
from heedful.translation.languages import LanguageChoice, chooses_languages
from heedful.translation.load_models import load_models
from heedful.translation.reading import (
    LongLines,
    TextReader,
    check_observed,
    warn_of_loops,
    without_links,
)
from heedful.translation.result import (
    Translation,
    WordAlignment,
    as_translation,
    between_blanks,
    check_found,
    with_notes,
    without_repeats,
)
from heedful.translation.sources import source_ids

# Positions per side that `score` computes at once; more positions take more memory.
_BATCH_TOKENS = 2048
# Maximum of sentences x beam x vocabulary in a search step: a quarter gibibyte of scores.
_STEP_LOGITS = 1 << 26
Warn = Callable[[str], None]


class Translator(LanguageChoice, AttentionOfPairs):
    """
    A translator with one trained run, or an ensemble of several.

    Parameters
    ----------
    run : Run
        The run with the settings and the tokenizer; for an ensemble, the first member's.
    *models : EncoderDecoder
        Models in evaluation mode, on one device; several models form an ensemble.

    Notes
    -----
    Create it with `Translator.load`. Threads may share it; their calls run one after the other.
    """

    def __init__(self, run: Run, *models: EncoderDecoder) -> None:
        self.run, self.models, self.turns = run, models, Turns()
        self.model = models[0] if len(models) == 1 else Ensemble(models)
        self.tokenizer, self.collator = run.tokenizer, run.collator(models[0])
        self.aligner = Aligner(run, models)

    def __repr__(self) -> str:
        return f"Translator({str(self.run.folder.path)!r}, on {self.model.device})"

    def __reduce__(self) -> NoReturn:
        raise ArgumentError(
            "a Translator cannot be copied or pickled; open it in each process with "
            f"Translator.load({str(self.run.folder.path)!r}), or share it between threads."
        )

    @classmethod
    @checked
    def load(
        cls,
        path: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        weights: str = "default",
        device: str = "auto",
        precision: str = "auto",
        threads: int = 0,
        plugins: Files | None = None,
        reading: Literal["exact", "text"] | None = None,
    ) -> "Translator":
        """
        Open a run folder, or several as an ensemble.

        Parameters
        ----------
        path : str, Path, TrainingResult or sequence of them
            The folder of a run. Several folders form an ensemble and must have the same tokenizer
            and direction. Token probabilities are averaged; languages, search settings and
            attention are taken from the first run.
        weights : str, default 'default'
            ``average``, ``best``, ``last`` or ``step-N``; by default the average unless training
            went on after it, else the best, else the last.
        device : str, default 'auto'
            ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        precision : {'auto', 'fp32', 'bf16', 'int8'}, default 'auto'
            `auto` chooses bf16 if this machine is clearly faster with it. With int8, weights and
            states are rounded to 8 bits for matrix products; this needs an x86 CPU.
        threads : int, default 0
            Number of CPU threads; 0 for `OMP_NUM_THREADS` or, if it is not set, one per core.
        plugins : path or sequence of them, optional
            Python files with the run's own parts (`heedful.plugins`); they are executed.
        reading : {'exact', 'text'}, optional
            How lines are read; replaces the run's `data.reading`.

        Returns
        -------
        Translator
            A translator that is ready to use.

        Notes
        -----
        Checksums are verified; nothing in a run folder is executed. Processes forked after a
        translation use one thread.
        """
        load_plugins(plugins)
        runs = [Run.open(name) for name in ([path] if isinstance(path, str | PathLike) else path)]
        models = load_models(runs, weights, device, precision, threads)
        return cls(runs[0].with_reading(reading), *models)

    @cached_property
    def reader(self) -> TextReader:
        """The reader of source lines."""
        read, most = self.run.read_sources, self.run.config.search.max_source_length
        reads_text, aligns = self.run.reads_text, self.aligner.can_align
        return TextReader(self.tokenizer, read, reads_text, most, aligns)

    @overload
    def translate(
        self, texts: str, options: SearchOptions | None = None, **keywords: Any
    ) -> Translation: ...

    @overload
    def translate(
        self, texts: Iterable[str], options: SearchOptions | None = None, **keywords: Any
    ) -> list[Translation]: ...

    @with_fields_of(SearchOptions)
    @checked
    @in_turn
    @chooses_languages
    def translate(
        self,
        texts: str | Iterable[str],
        options: SearchOptions | None = None,
        *,
        target_prefix: str | Sequence[str] | None = None,
        force_phrases: Sequence[str | Sequence[str]] | None = None,
        avoid_phrases: Sequence[str | Sequence[str]] | None = None,
        probabilities: bool = False,
        attention: bool = False,
        alignments: bool = False,
        align_by: str = "",
        replace_unknown: bool | Mapping[str, str] = False,
        batch_tokens: int = _BATCH_TOKENS,
        batch_lines: int | None = None,
        first_line: int = 1,
        glossary: Mapping[str, str] | None = None,
        protected: Sequence[str] | None = None,
        long_lines: LongLines = "split",
        from_language: str = "",
        to_language: str = "",
        warn: Warn | None = None,
        observer: SearchObserver | None = None,
        **keywords: Any,
    ) -> Translation | list[Translation]:
        """
        Translate one sentence or several.

        Parameters
        ----------
        texts : str or iterable of str
            One sentence or several.
        options : SearchOptions, optional
            All options of the search, instead of keywords.
        target_prefix : sequence of str, optional
            The beginning of each translation, in whole subwords: “wo” does not become “world” if
            “world” is one subword. It is kept as written. Give a string if `texts` is a string.
        force_phrases : sequence of sequence of str, optional
            For each line, phrases that its translation must contain; for a single text, its
            phrases.
        avoid_phrases : sequence of sequence of str, optional
            For each line, phrases that its translation must not contain.
        probabilities : bool, default False
            Whether to return the log-probability of each subword.
        attention : bool, default False
            Whether to return attention weights with the best translation.
        alignments : bool, default False
            Whether to return which word translates which.
        align_by : str, optional
            How alignments are extracted, such as ``layer=2,shift`` (`Extraction.parse`).
        replace_unknown : bool or mapping of str to str, default False
            Whether an unknown word becomes its aligned source word, or that word's entry in a
            mapping.
        batch_tokens : int, default 2048
            Maximum number of source tokens per batch, padding included.
        batch_lines : int, optional
            Maximum number of lines per batch; no limit if None.
        first_line : int, default 1
            Line number of the first line, for messages; random samples depend on it.
        glossary : mapping of str to str, optional
            Terms and their translations. A term matches whole words, but not inflected forms; of
            terms with the same start, the longest is used.
        protected : sequence of str, optional
            Strings that stay unchanged in the translation.
        long_lines : {'split', 'cut'}, default 'split'
            Whether a line that is too long for the model is split at ends of sentences or cut off,
            if `data.reading` is text.
        from_language, to_language : str, optional
            Languages of this call, for multilingual models (`between`).
        warn : callable, optional
            Called with a message about truncated lines, missing constraints and unknown subwords.
        observer : callable, optional
            Called after each search step of a nonempty line, with the line's index in `texts`. A
            line that must be split is refused.
        **keywords : object
            Fields of `SearchOptions`, such as ``beam=4``, instead of `options`.

        Returns
        -------
        Translation or list of Translation
            One for a string, else one per line, in order. An empty line always stays empty.

        Notes
        -----
        The model reads single spaces between words; a line's outer white space is restored. With
        `data.reading` = text, pieces that the model cannot translate are cut out and put back.
        Lines of similar length are decoded together, and on a CPU several batches at a time. A
        phrase matches only as the subwords into which the tokenizer splits it.
        """
        # 1. check the request before anything is computed
        originals, is_single = read_texts("texts", texts), isinstance(texts, str)
        read = self.reader.read(originals, Terms.of(glossary, protected), long_lines)
        lines, numbers = read.rows, [first_line + line for line in read.lines]
        check_observed(observer, read, self.reader.longest)
        options = SearchOptions.from_keywords("Translator.translate", options, keywords)
        check_counts(batch_tokens=batch_tokens, batch_lines=batch_lines, first_line=first_line)
        if force_phrases is not None:
            options.check_constraints()
        settings = options.over(self.run.config.search)
        check_coverage(settings.coverage_penalty, self.models)
        aligns = alignments or replace_unknown is not False
        linked = range(len(lines)) if aligns else read.linked if self.reader.aligns else ()
        by = self.aligner.extraction(align_by, wanted=bool(linked))

        # 2. text to ids
        prefixes = read.spread(
            "target_prefix",
            [target_prefix] if isinstance(target_prefix, str) else target_prefix,
            "",
        )
        line_constraints = read_constraints(
            self.tokenizer,
            len(lines),
            target_prefix=prefixes,
            force_phrases=read.spread(
                "force_phrases", by_line("force_phrases", force_phrases, is_single), ()
            ),
            avoid_phrases=read.repeat(
                "avoid_phrases", by_line("avoid_phrases", avoid_phrases, is_single)
            ),
            numbers=numbers,
            warn=warn,
        )
        ids = self._source_ids(lines, warn, numbers)
        results = [Translation("", 0.0, (), 0.0)] * len(lines)
        written: list[list[tuple[int, ...]]] = [[()] for _ in lines]
        task = self.run.task
        restricted = task.is_restricted or settings.min_length or target_prefix or force_phrases

        # 3. batches of similar length, bounded by the scores of one step of the search
        filled = [index for index, row in enumerate(ids) if row]
        each_row = settings.size * self.run.vocabularies[1] * len(self.models)
        most_rows = min(max(1, _STEP_LOGITS // each_row), batch_lines or _STEP_LOGITS)
        groups = by_length([len(ids[index]) for index in filled], batch_tokens, most_rows)
        batches = [[filled[position] for position in group] for group in groups]

        def search(rows: list[int]) -> list[list[Hypothesis]]:
            """Search for translations of a batch."""
            source = self.collator.source([ids[row] for row in rows]).to(self.model.device)
            limits = [settings.limit.tokens(len(ids[row])) for row in rows]
            constraints = [line_constraints[row] for row in rows]
            check_prefixes(constraints, limits, [numbers[row] for row in rows])
            return run_search(
                self.model,
                source,
                limits,
                settings,
                rules=self.run.rules(
                    [lines[row] for row in rows], limits, source.device, settings.rules
                ),
                line_constraints=constraints,
                # each part of a split line has its own random samples
                lines=[numbers[row] + (read.places[row] << 32) for row in rows],
                constrained=force_phrases is not None,
                observer=observer and offset_sentence(observer, [read.lines[row] for row in rows]),
            )

        # 4. ids to text
        searched = search_batches(search, batches, self.models, observer)
        for rows, searched_rows in zip(batches, searched, strict=True):
            for row, hypotheses in zip(rows, searched_rows, strict=True):
                line = numbers[row]
                check_found(hypotheses, line, bool(restricted), settings.rules or "")
                if warn is not None:
                    warn_missing(self.tokenizer, line_constraints[row], hypotheses[0], line, warn)
                weights = self.attention_of(ids[row], hypotheses[0].tokens) if attention else None
                results[row] = as_translation(self.tokenizer, hypotheses, weights, probabilities)
                written[row] = [hypothesis.tokens for hypothesis in hypotheses]
        # 5. links where they are requested or needed for restoration; then restoration
        if linked:
            needed = alignments or bool(read.linked)
            notes = self.aligner.note(lines, ids, written, by, needed, replace_unknown, linked)
            results = [with_notes(*pair) for pair in zip(results, notes, strict=True)]
        results = read.restored(results, self.reader.prefixes(lines, prefixes, numbers, warn))
        results = results if settings.sample else list(map(without_repeats, results))
        if warn is not None:
            warn_of_loops(results, first_line, warn)
        results = results if alignments else list(map(without_links, results))
        results = results if task.is_verbatim else list(map(between_blanks, results, originals))
        return results[0] if is_single else results

    @overload
    def align(  # type: ignore[overload-overlap]  # a string is one sentence, not several
        self,
        sources: str,
        targets: str,
        align_by: str = "",
        *,
        from_language: str = "",
        to_language: str = "",
    ) -> WordAlignment: ...

    @overload
    def align(
        self,
        sources: Iterable[str],
        targets: Iterable[str],
        align_by: str = "",
        *,
        from_language: str = "",
        to_language: str = "",
    ) -> list[WordAlignment]: ...

    @checked
    @in_turn
    @chooses_languages
    def align(
        self,
        sources: str | Iterable[str],
        targets: str | Iterable[str],
        align_by: str = "",
        *,
        from_language: str = "",
        to_language: str = "",
    ) -> WordAlignment | list[WordAlignment]:
        """
        Align the words of given translations.

        Parameters
        ----------
        sources : str or iterable of str
            One sentence or several.
        targets : str or iterable of str
            The translations, in order.
        align_by : str, optional
            How alignments are extracted, such as ``layer=2,shift`` (`Extraction.parse`).
        from_language, to_language : str, optional
            Languages of this call, for multilingual models (`between`).

        Returns
        -------
        WordAlignment or list of WordAlignment
            One alignment for two strings; for several pairs, a list in order.

        Notes
        -----
        Many pairs are aligned at once. With gold links, `Aligner.rate` finds the best layer.
        """
        by, is_single = self.aligner.extraction(align_by), isinstance(sources, str)
        alignments = self.aligner.align(*read_pairs(sources, targets), by)
        return alignments[0] if is_single else alignments

    @overload
    def score(  # type: ignore[overload-overlap]
        self,
        sources: str,
        targets: str,
        batch_tokens: int = _BATCH_TOKENS,
        *,
        from_language: str = "",
        to_language: str = "",
    ) -> list[float]: ...

    @overload
    def score(
        self,
        sources: Iterable[str],
        targets: Iterable[str],
        batch_tokens: int = _BATCH_TOKENS,
        *,
        from_language: str = "",
        to_language: str = "",
    ) -> list[list[float]]: ...

    @checked
    @in_turn
    @chooses_languages
    def score(
        self,
        sources: str | Iterable[str],
        targets: str | Iterable[str],
        batch_tokens: int = _BATCH_TOKENS,
        *,
        from_language: str = "",
        to_language: str = "",
    ) -> list[float] | list[list[float]]:
        """
        Compute the log-probabilities of given translations.

        Parameters
        ----------
        sources : str or iterable of str
            One sentence or several.
        targets : str or iterable of str
            The translations, in order.
        batch_tokens : int, default 2048
            Maximum number of positions per side in a batch, padding included.
        from_language, to_language : str, optional
            Languages of this call, for multilingual models (`between`).

        Returns
        -------
        list of float or list of list of float
            Log-probabilities of each pair's target subwords, with the end symbol's last; a single
            list for two strings.

        Notes
        -----
        The sum for a pair is the log-probability that a search would report for the same subwords.
        """
        check_counts(batch_tokens=batch_tokens)
        source_ids, target_ids = self.aligner.pair_ids(*read_pairs(sources, targets))
        lengths = [max(len(s), len(t)) + 1 for s, t in zip(source_ids, target_ids, strict=True)]
        results: list[list[float]] = [[] for _ in lengths]
        for rows in by_length(lengths, batch_tokens):
            pairs = [source_ids[row] for row in rows], [target_ids[row] for row in rows]
            scored = mean_scores(self.run, self.model, self.models, *pairs)
            for row, log_probabilities in zip(rows, scored, strict=True):
                results[row] = log_probabilities
        return results[0] if isinstance(sources, str) else results

    def _source_ids(
        self, texts: Sequence[str], warn: Warn | None, lines: Sequence[int] = ()
    ) -> list[list[int]]:
        """Encode the lines; truncate lines longer than `search.max_source_length`."""
        return source_ids(self.tokenizer, texts, self.reader.longest, warn, lines)
