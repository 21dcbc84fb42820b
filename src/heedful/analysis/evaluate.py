"""Evaluation of translation files against references."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sacrebleu.metrics.base import Metric

from heedful.analysis.aligned_texts import (
    AlignedTexts,
    scored_lines,
    select,
    unscored_note,
)
from heedful.errors import TextError, UserError
from heedful.evaluation.bleu import text_metrics
from heedful.evaluation.comet import NEEDS, comet_score, require_comet
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
from heedful.text.corpus import expand, language_of, one_file
from heedful.text.file_formats import TextSource

_RESAMPLING = Resampling()
_LABELS = {
    "bleu": "BLEU",
    "paper_bleu": "paper BLEU (tokenised, split)",
    "chrf": "chrF",
    "ter": "TER (lower is better)",
    "exact_match": "exact match",
    "cer": "CER (lower is better)",
    "comet": "COMET",
}
_WIDTH = max(map(len, _LABELS.values()))


@dataclass(frozen=True)
class ComparedFile:  # numpydoc ignore=PR02
    """A system compared with the evaluated one."""

    file: Path
    """Its translations."""
    comparisons: dict[str, SignificanceTest]
    """Under the names of the scores."""


@dataclass(frozen=True)
class Evaluation:  # numpydoc ignore=PR02
    """All scores of one file of translations."""

    file: Path
    """The translations."""
    scores: dict[str, MetricScore]
    """
    Under “bleu”, “paper_bleu”, “chrf”, “ter”, “exact_match”, “cer” and “comet”, in this order,
    those that were computed.
    """
    paper_bleu_missing: str
    """Why there is no “paper_bleu”; empty if there is."""
    rivals: tuple[ComparedFile, ...]
    """The systems it was compared with."""
    test: Test
    """Where the p-values come from."""
    resampling: Resampling
    """How the p-values and intervals were drawn."""
    lines: tuple[int, int]
    """Lines that are scored, and all; a line without a reference is not scored."""

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
        scored, lines = self.lines
        if scored < lines:
            plain |= {"scored_lines": scored, "lines": lines}
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


def evaluate_files(
    hypothesis: Path,
    references: Sequence[str | Path],
    *,
    language: str = "",
    lowercase: bool = False,
    source: Path | None = None,
    comet: str = "",
    against: Sequence[str | Path] = (),
    confidence: bool = False,
    test: Test = "randomisation",
    resampling: Resampling = _RESAMPLING,
) -> Evaluation:
    """
    Compute BLEU, the paper's BLEU, chrF, TER, exact match and CER of a file of translations.

    `comet`: a COMET model or checkpoint, if its score is wanted too. It is unpickled by its own
    library, so it must be trusted.

    Everything is read and checked before anything is computed. Segments of WMT's test sets that
    have no reference are not scored. The paper's BLEU is optional: where
    it is not available, the reason is given instead.

    Raises `TextError` if a file cannot be read, or has not the lines of the others, or there is no
    such language. Raises `MissingExtra` if COMET is needed and not installed.
    """
    check_language(language)
    files = expand(references)
    translated = AlignedTexts(one_file(hypothesis), "hypothesis")
    all_sets = [translated.read_reference(text) for text in files]
    scored = scored_lines(all_sets)
    sets = [select(reference, scored) for reference in all_sets]
    lines = select(translated.lines, scored)
    rivals = {
        path: select(translated.read(one_file(path), "other system"), scored)
        for path in map(Path, against)
    }
    sources = [] if source is None else select(translated.read(one_file(source), "source"), scored)
    if comet:
        _check_comet(source, sets)
    language = (
        language
        or _language([*files, translated.text])
        or written_language([line for line in sets[0] if line])
    )

    metrics = text_metrics(sets, language=language, lowercase=lowercase)
    paper, missing = _paper_metric(sets, language, lowercase)
    metrics = {"bleu": metrics.pop("bleu"), **paper, **metrics}
    measured = _measure(metrics, lines)
    scores = _scores(measured, resampling if confidence else None)
    if comet:
        scores["comet"] = comet_score(comet, sources, lines, sets)
    compared = [
        ComparedFile(path, _compare(measured, _measure(metrics, theirs), test, resampling))
        for path, theirs in rivals.items()
    ]
    return Evaluation(
        hypothesis,
        scores,
        missing,
        tuple(compared),
        test,
        resampling,
        (len(scored), len(translated.lines)),
    )


def as_text(evaluation: Evaluation) -> str:
    """Format an evaluation as text."""
    lines = [_score_line(evaluation, name) for name in _LABELS]
    if note := unscored_note(*evaluation.lines):
        lines += ["", note]
    lines += ["", *_signatures(evaluation)]
    for rival in evaluation.rivals:
        lines += ["", *_table(evaluation, rival)]
    if evaluation.resampled:
        lines += ["", *_small_print(evaluation)]
    return "\n".join(line for line in lines if line is not None)


def _score_line(evaluation: Evaluation, name: str) -> str | None:
    """Format one score, or why it is missing."""
    if score := evaluation.scores.get(name):
        figure = f"{score.score:.4f}" if name == "comet" else f"{score.score:.2f}"
        interval = "  [{:.2f}, {:.2f}]".format(*score.interval) if score.interval else ""
        return f"{_LABELS[name]:<{_WIDTH}} {figure:>6}{interval}"
    if name == "paper_bleu":
        return f"{_LABELS[name]:<{_WIDTH}} {'–':>6}"
    return None


def _signatures(evaluation: Evaluation) -> Iterator[str]:
    """Format the signature of each score, or why it is missing."""
    labels = {name: _LABELS[name].partition(" (")[0] for name in _LABELS}
    width = max(map(len, labels.values()))
    for name, label in labels.items():
        if score := evaluation.scores.get(name):
            yield f"{label:<{width}}  {score.signature}"
        elif name == "paper_bleu":
            yield f"{label:<{width}}  none: {evaluation.paper_bleu_missing}"


def _table(evaluation: Evaluation, rival: ComparedFile) -> Iterator[str]:
    """Format the differences from one other system."""
    yield f"{evaluation.file} against {rival.file}"
    yield f"{'':<{_WIDTH}} {'this':>6} {'other':>6} {'diff.':>6}  {'95 % interval':>16}  {'p':>6}"
    for name, found in rival.comparisons.items():
        interval = "[{:+.2f}, {:+.2f}]".format(*found.interval)
        yield (
            f"{_LABELS[name]:<{_WIDTH}} {evaluation.scores[name].score:6.2f} {found.score:6.2f} "
            f"{found.difference:+6.2f}  {interval:>16}  {found.p_value:6.4f}"
        )


def _small_print(evaluation: Evaluation) -> Iterator[str]:
    """Explain how intervals and p-values were computed."""
    draws = f"{evaluation.resampling.trials:,} times, seed {evaluation.resampling.seed}"
    yield f"Intervals (95 %): bootstrap, {draws}."
    if evaluation.rivals:
        names = {"randomisation": "approximate randomisation", "bootstrap": "paired bootstrap"}
        yield f"p: {names[evaluation.test]}, two-sided, {draws}."


def _language(texts: Sequence[TextSource]) -> str:
    """Infer the language from the first file name that has one, such as “de”."""
    return next(
        (code for code in map(language_of, texts) if code.islower() and is_language(code)), ""
    )


def _check_comet(source: Path | None, references: References) -> None:
    """Check the requirements of COMET early."""
    if source is None:
        raise TextError(f"{NEEDS}; the source text is not given.")
    require_comet(references)


def _paper_metric(
    references: References, language: str, lowercase: bool
) -> tuple[dict[str, Metric], str]:
    """Prepare the paper's BLEU, or return why it is not available."""
    if not language:
        return {}, "the target language is not known; give it, as in --language de"
    try:
        return {"paper_bleu": PaperBLEU(references, language, lowercase=lowercase)}, ""
    except UserError as error:
        return {}, str(error)


def _measure(metrics: dict[str, Metric], lines: Sequence[str]) -> dict[str, SufficientStatistics]:
    """Score one system by every metric."""
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


def _compare(
    ours: dict[str, SufficientStatistics],
    theirs: dict[str, SufficientStatistics],
    test: Test,
    resampling: Resampling,
) -> dict[str, SignificanceTest]:
    """Compare two systems by every metric."""
    found = compare(list(ours.values()), list(theirs.values()), test, resampling)
    return dict(zip(ours, found, strict=True))
