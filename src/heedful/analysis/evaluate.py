"""Evaluation of translation files and runs against references."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from reprlib import repr as shorten
from typing import Any

from sacrebleu.metrics.base import Metric

from heedful.analysis.aligned_texts import (
    AlignedTexts,
    scored_lines,
    select,
    unscored_note,
)
from heedful.arguments import checked
from heedful.errors import ArgumentError, TextError, UserError
from heedful.evaluation.bleu import text_metrics
from heedful.evaluation.comet import NEEDS, comet_score, decimals_of, require_comet
from heedful.evaluation.languages import check_language, is_language, written_language
from heedful.evaluation.line_metrics import References
from heedful.evaluation.paper_bleu import PaperBLEU
from heedful.evaluation.significance import (
    Resampling,
    SignificanceTest,
    Test,
    compare,
    confidence_intervals,
)
from heedful.evaluation.sufficient_statistics import MetricScore, SufficientStatistics, measure
from heedful.runs.hub_names import hub_name
from heedful.search.settings import SearchOptions
from heedful.text.corpus import expand, language_of, one_file
from heedful.text.file_formats import TextSource
from heedful.text.sentence_pairs import Files, Pairs, file_list, pairs_in_memory

_RESAMPLING = Resampling()
_LABELS = {
    "bleu": "BLEU",
    "paper_bleu": "paper BLEU (tokenized, split)",
    "chrf": "chrF",
    "ter": "TER (lower is better)",
    "exact_match": "exact match",
    "cer": "CER (lower is better)",
    "comet": "COMET",
}
# With fewer lines, intervals and p-values come with a warning; Koehn (2004) uses 300 lines.
_FEW_LINES = 100
_WIDTH = max(map(len, _LABELS.values()))


@dataclass(frozen=True)
class ComparedFile:  # numpydoc ignore=PR02
    """A system with which the evaluated system is compared."""

    file: Path
    """The system's translations."""
    comparisons: dict[str, SignificanceTest]
    """Significance tests, by the name of the score."""


@dataclass(frozen=True)
class Evaluation:  # numpydoc ignore=PR02
    """All scores of a file of translations, or of the translations of a run."""

    file: Path
    """The file of translations, or the run folder."""
    scores: dict[str, MetricScore]
    """
    The computed scores by name, in the order of the names below.

    The names are “bleu”, “paper_bleu”, “chrf”, “ter”, “exact_match”, “cer” and “comet”.
    """
    paper_bleu_missing: str
    """Reason why there is no “paper_bleu”; empty if there is one."""
    rivals: tuple[ComparedFile, ...]
    """The systems with which the translations were compared."""
    test: Test
    """The significance test that gives the p-values."""
    resampling: Resampling
    """Number and seed of the draws for p-values and intervals."""
    lines: tuple[int, int]
    """Numbers of scored lines and of all lines; a line without a reference is not scored."""
    loss: float | None = None
    """Mean loss of the first reference's tokens in nats, for a run; None for a file."""

    def __repr__(self) -> str:
        scores = [
            f"{_LABELS[name].partition(' (')[0]} {_figure(name, score.score)}"
            for name, score in self.scores.items()
        ]
        if self.loss is not None:
            scores.insert(0, f"loss {self.loss:.3f}")
        return f"Evaluation({str(self.file)!r}, {', '.join(scores)})"

    def __str__(self) -> str:
        return as_text(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings for readers of the scores, as full sentences."""
        notes = []
        scores, lines = self.scores, self.lines[0]
        if not scores["bleu"].score and "chrf" in scores and scores["chrf"].score:
            notes.append(
                "BLEU is 0 because every translation has fewer than four words, or because no "
                "translation shares a word with its reference; for such lines use chrF."
            )
        if self.resampled and lines < _FEW_LINES:
            count = "one line was" if lines == 1 else f"{lines} lines were"
            notes.append(
                f"Only {count} scored, but intervals and p-values are reliable only for a hundred "
                "lines or more."
            )
        return tuple(notes)

    @property
    def resampled(self) -> bool:
        """Whether any score used random resampling."""
        return bool(self.rivals) or any(s.interval is not None for s in self.scores.values())

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values."""
        plain: dict[str, Any] = {"bleu": None, "paper_bleu": None}
        plain |= {name: score.to_dict() for name, score in self.scores.items()}
        if self.paper_bleu_missing:
            plain["paper_bleu_missing"] = self.paper_bleu_missing
        if self.loss is not None:
            plain["loss"] = self.loss
        scored, lines = self.lines
        if scored < lines:
            plain |= {"scored_lines": scored, "lines": lines}
        if self.notes:
            plain["notes"] = list(self.notes)
        if self.rivals:
            plain["against"] = [
                {"hypothesis": str(rival.file)}
                | {name: asdict(comparison) for name, comparison in rival.comparisons.items()}
                for rival in self.rivals
            ]
        if self.resampled:
            plain["resampling"] = {"test": self.test} if self.rivals else {}
            plain["resampling"] |= asdict(self.resampling)
        return plain


@dataclass(frozen=True)
class _Texts:
    """The scored translations, with the texts that belong to their lines."""

    file: Path
    translations: list[str]
    references: list[list[str | None]]
    rivals: dict[Path, list[str]]
    sources: list[str]
    language: str
    """Language code from the names of the files, or else from the run; empty if unknown."""
    loss: float | None = None


@checked
def evaluate(
    system: Any,
    reference: Files | None = None,
    *,
    source: Files | None = None,
    pairs: Pairs | None = None,
    options: SearchOptions | None = None,
    from_language: str = "",
    to_language: str = "",
    language: str = "",
    lowercase: bool = False,
    comet: str = "",
    against: Files = (),
    confidence: bool = False,
    test: Test = "randomization",
    resampling: Resampling = _RESAMPLING,
) -> Evaluation:
    """
    Score translations, or a run that translates.

    Parameters
    ----------
    system : str, Path, TrainingResult or Translator
        A file of translations; or a run folder or translator, which first translates the sources.
    reference : path or sequence of paths, optional
        One or more files of reference translations.
    source : path, optional
        The source text, for a run or for COMET.
    pairs : iterable of pairs of str, or table, optional
        For a run: sources and references in memory instead of files, in a form that `heedful.train`
        accepts.
    options : SearchOptions, optional
        Options of a run's search.
    from_language, to_language : str, optional
        Languages that a run translates between, for multilingual models (`Translator.between`).
    language : str, optional
        Code of the target language; by default from file names, the run's settings, or the script
        of the references.
    lowercase : bool, default False
        Whether to ignore case.
    comet : str, optional
        A COMET model or checkpoint. COMET's library runs code from it, so name a model that you
        trust.
    against : path or sequence of paths, optional
        Translations of other systems, to test the differences from them.
    confidence : bool, default False
        Whether to compute the 95% interval of each score.
    test : {'randomization', 'bootstrap'}, default 'randomization'
        Significance test of `against`.
    resampling : Resampling, optional
        Number and seed of the random draws.

    Returns
    -------
    Evaluation
        Its `scores` contain BLEU, the paper's BLEU, chrF, TER, exact match and CER, each with its
        signature. For a run it also has the `loss`. `print` shows the same table as the command.

    Notes
    -----
    On the command line, `heedful evaluate` scores files of translations. All files are read before
    any score is computed. Segments of WMT's test sets without a reference are not scored. If the
    paper's BLEU is not available, `paper_bleu_missing` gives the reason.
    """
    check_language(language)
    # a `TrainingResult` is a run, even if its folder was deleted
    is_file = (
        isinstance(system, str | Path) and not Path(system).is_dir() and hub_name(system) is None
    )
    languages = from_language, to_language
    if is_file and any(languages):
        raise ArgumentError(
            "`from_language` and `to_language` choose the languages of a run, but `system` is a "
            "file of translations; leave them out, or name a run. For a file, set `language`."
        )
    if is_file and pairs is None:
        texts = _read_files(Path(system), reference, source, against)
    elif is_file:
        raise ArgumentError(
            "`pairs` are translated by a run, but `system` is a file of translations; give its "
            "references as `reference`."
        )
    else:
        texts = _run_texts(system, reference, source, pairs, options, against, languages)
    scored = scored_lines(texts.references)
    sets = [select(reference, scored) for reference in texts.references]
    lines = select(texts.translations, scored)
    if comet:
        if not texts.sources:
            raise TextError(f"{NEEDS}. The source text is missing.")
        require_comet(sets)
    language = language or texts.language or written_language([line for line in sets[0] if line])

    metrics = text_metrics(sets, language=language, lowercase=lowercase)
    paper, missing = _paper_metric(sets, language, lowercase)
    metrics = {"bleu": metrics.pop("bleu"), **paper, **metrics}
    measured = _measure(metrics, lines)
    scores = _scores(measured, resampling if confidence else None)
    if comet:
        scores["comet"] = comet_score(comet, select(texts.sources, scored), lines, sets)
    compared = []
    for path, theirs in texts.rivals.items():
        rival = _measure(metrics, select(theirs, scored))
        tests = compare([*measured.values()], [*rival.values()], test, resampling)
        compared.append(ComparedFile(path, dict(zip(measured, tests, strict=True))))
    return Evaluation(
        texts.file,
        scores,
        missing,
        tuple(compared),
        test,
        resampling,
        (len(scored), len(texts.translations)),
        texts.loss,
    )


def _read_files(
    hypothesis: Path, reference: Files | None, source: Files | None, against: Files
) -> _Texts:
    """Read a file of translations, and the texts that are aligned with it."""
    if reference is None:
        raise ArgumentError(
            "evaluate needs `reference`, one or more files of reference translations."
        )
    translated = AlignedTexts(one_file(hypothesis), "hypothesis")
    texts = _read_aligned(hypothesis, translated, translated.lines, reference, source, against)
    return replace(texts, language=texts.language or _language([translated.text]))


def _read_aligned(
    file: Path,
    first: AlignedTexts,
    translations: list[str],
    reference: Files,
    source: Files | None,
    against: Files,
) -> _Texts:
    """Read the texts that are aligned with a first text."""
    files = expand(file_list(reference))
    return _Texts(
        file,
        translations,
        [first.read_reference(text) for text in files],
        {
            path: first.read(one_file(path), "other system")
            for path in map(Path, file_list(against))
        },
        [] if source is None else first.read(_one_source(source), "source"),
        _language(files),
    )


def _one_source(source: Files) -> TextSource:
    """Find the source text, which must be a single file."""
    names = file_list(source)
    if len(names) != 1:
        raise TextError(f"`source` must be one file, but got {len(names)} of them.")
    return one_file(names[0])


def _run_texts(
    system: Any,
    reference: Files | None,
    source: Files | None,
    pairs: Pairs | None,
    options: SearchOptions | None,
    against: Files,
    languages: tuple[str, str],
) -> _Texts:
    """Translate the sources with a run, and compute its loss on the first reference."""
    from heedful.runs.run import Run
    from heedful.translation.load_models import load_models
    from heedful.translation.translator import Translator

    # 1. read the texts, before the weights are read
    if not isinstance(system, str | PathLike | Translator):
        raise ArgumentError(
            "`system` of evaluate must be a file of translations, a run folder or a Translator, "
            f"but got {shorten(system)}."
        )
    run = system.run if isinstance(system, Translator) else Run.open(system)
    direction = run.between(*languages, ("from_language", "to_language")).direction
    texts = _Texts(Path(), [], [], {}, [], "")
    if pairs is not None and not (reference or source or against):
        listed = [*pairs_in_memory(pairs, direction)]
        texts = replace(texts, references=[[t for _, t in listed]], sources=[s for s, _ in listed])
    elif pairs is None and source is not None and reference is not None:
        first = AlignedTexts(_one_source(source), "source")
        texts = _read_aligned(Path(), first, [], reference, source, against)
    else:
        raise ArgumentError(
            "a run is evaluated on files or on sentences; give either `source` and `reference`, "
            "or only `pairs`."
        )

    # 2. translate, and compute the loss of the references
    translator = system
    if not isinstance(translator, Translator):
        translator = Translator(run, *load_models([run]))
    translator = translator.between(*languages)
    translations = translator.translate(texts.sources, options)
    lines = zip(texts.sources, texts.references[0], strict=True)
    known = [(line, target) for line, target in lines if target is not None]
    scored = translator.score([s for s, _ in known], [t for _, t in known])
    tokens = [value for line in scored for value in line]
    return replace(
        texts,
        file=translator.run.folder.path,
        language=texts.language or (direction.target if is_language(direction.target) else ""),
        translations=[str(translation) for translation in translations],
        loss=-sum(tokens) / len(tokens),
    )


def as_text(evaluation: Evaluation) -> str:
    """Format an evaluation as text."""
    lines = [_score_line(evaluation, name) for name in _LABELS]
    if evaluation.loss is not None:
        lines.insert(0, f"{'loss of the references':<{_WIDTH}} {evaluation.loss:6.3f}")
    if note := unscored_note(*evaluation.lines):
        lines += ["", note]
    lines += ["", *_signatures(evaluation)]
    for rival in evaluation.rivals:
        lines += ["", *_table(evaluation, rival)]
    if evaluation.resampled:
        test = evaluation.test if evaluation.rivals else None
        lines += ["", *evaluation.resampling.describe(test)]
    if evaluation.notes:
        lines += ["", *evaluation.notes]
    return "\n".join(line for line in lines if line is not None)


def _figure(name: str, value: float) -> str:
    """Format the value of a score."""
    return f"{value:.{decimals_of(name)}f}"


def _score_line(evaluation: Evaluation, name: str) -> str | None:
    """Format one score, or a dash if the paper's BLEU is missing."""
    if score := evaluation.scores.get(name):
        low_and_high = [_figure(name, limit) for limit in score.interval or ()]
        interval = f"  [{', '.join(low_and_high)}]" if low_and_high else ""
        return f"{_LABELS[name]:<{_WIDTH}} {_figure(name, score.score):>6}{interval}"
    if name == "paper_bleu":
        return f"{_LABELS[name]:<{_WIDTH}} {'–':>6}"
    return None


def _signatures(evaluation: Evaluation) -> Iterator[str]:
    """Format the signature of each score, or the reason why the score is missing."""
    labels = {name: _LABELS[name].partition(" (")[0] for name in _LABELS}
    width = max(map(len, labels.values()))
    for name, label in labels.items():
        if score := evaluation.scores.get(name):
            yield f"{label:<{width}}  {score.signature}"
        elif name == "paper_bleu":
            yield f"{label:<{width}}  none: {evaluation.paper_bleu_missing}"


def _table(evaluation: Evaluation, rival: ComparedFile) -> Iterator[str]:
    """Format the differences from another system."""
    yield f"{evaluation.file} against {rival.file}"
    yield f"{'':<{_WIDTH}} {'this':>6} {'other':>6} {'diff.':>6}  {'95% interval':>16}  {'p':>6}"
    for name, test in rival.comparisons.items():
        interval = "[{:+.2f}, {:+.2f}]".format(*test.interval)
        yield (
            f"{_LABELS[name]:<{_WIDTH}} {evaluation.scores[name].score:6.2f} {test.score:6.2f} "
            f"{test.difference:+6.2f}  {interval:>16}  {test.p_value:6.4f}"
        )


def _language(texts: Sequence[TextSource]) -> str:
    """Infer the language from the first file name that has a language code, such as “de”."""
    # A suffix in capitals is the name of a system, as in out.MT; capitals after the first two
    # letters belong to a script or region.
    return next(
        (code for code in map(language_of, texts) if code[:2].islower() and is_language(code)), ""
    )


def _paper_metric(
    references: References, language: str, lowercase: bool
) -> tuple[dict[str, Metric], str]:
    """Prepare the paper's BLEU, or return the reason why it is not available."""
    if not language:
        return {}, "the target language is not known; give it, as in --language de"
    try:
        return {"paper_bleu": PaperBLEU(references, language, lowercase=lowercase)}, ""
    except UserError as error:
        return {}, str(error)


def _measure(metrics: dict[str, Metric], lines: Sequence[str]) -> dict[str, SufficientStatistics]:
    """Compute the sufficient statistics of every metric for one system."""
    return {name: measure(metric, lines) for name, metric in metrics.items()}


def _scores(
    measured: dict[str, SufficientStatistics], resampling: Resampling | None
) -> dict[str, MetricScore]:
    """Score one system, with confidence intervals if requested."""
    intervals = (
        [None] * len(measured)
        if resampling is None
        else confidence_intervals(list(measured.values()), resampling)
    )
    return {
        name: MetricScore(of.score, of.signature, interval)
        for (name, of), interval in zip(measured.items(), intervals, strict=True)
    }
