"""
Comparison of two runs: settings, cost, scores, and sentences with the largest differences.

The runs may have different recipes, tokenizers and machines. Notes state which figures of the two
runs are not comparable.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from heedful.analysis.aligned_texts import AlignedTexts, scored_lines, select, unscored_note
from heedful.analysis.plot import run_names
from heedful.analysis.training_cost import training_cost
from heedful.evaluation.comparison import (
    ComparedSentence,
    PairedScore,
    most_different,
    paired_scores,
)
from heedful.evaluation.languages import is_language, written_language
from heedful.model.weights import parameter_count
from heedful.preparation.training_data import without_keys
from heedful.runs.run import Run, flat_settings, read_corpus, read_machine_settings
from heedful.settings.registries import score_metrics
from heedful.text.corpus import expand, one_file
from heedful.training.history import read_history
from heedful.training.log import perplexity
from heedful.translation.translator import Translator

Both = tuple[Any, Any]
FACTS = (
    "parameters",
    "source_vocabulary",
    "target_vocabulary",
    "steps",
    "target_tokens",
    "hours",
    "counted_flops",
    "last_loss",
    "valid_perplexity",
    "valid_perplexity_step",
    *(f"{metric.key}{what}" for metric in score_metrics() for what in ("", "_step")),
    "weights",
)


@dataclass(frozen=True)
class RunComparison:
    """The comparison of two runs, as plain values."""

    names: tuple[str, str]
    """Names of the runs."""
    facts: dict[str, Both]
    """
    Model size, training length, cost and best validation results of both runs; None if unknown.
    """
    settings: dict[str, Both]
    """Settings, machine settings and text files that differ between the runs."""
    notes: tuple[str, ...]
    """Figures that are not comparable, and why."""
    scores: tuple[PairedScore, ...] = ()
    """Scores on the held-out text; empty without such a text."""
    sentences: tuple[ComparedSentence, ...] = ()
    """Sentences with different translations, the largest difference in chrF first."""

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values, as printed by ``compare --json``."""
        return asdict(self)


@dataclass(frozen=True)
class HeldOutText:
    """
    The text that both runs translate, and the options of their search.

    Each run uses its own values of all other search settings.
    """

    source: Path
    """The source text, one sentence per line."""
    references: Sequence[str | Path]
    """One or more files, aligned by line with the source."""
    weights: str = "default"
    """Name of the weights to use in each run."""
    beam: int | None = None
    """Beam size; None means each run's own."""
    sentences: int = 10
    """Number of sentences to show, beginning with the largest difference."""
    device: str = "auto"
    precision: str = "auto"
    threads: int = 0
    """Number of CPU threads; 0 for `OMP_NUM_THREADS` or, if it is not set, one per core."""


def compare_runs(first: Path, second: Path, text: HeldOutText | None = None) -> RunComparison:
    """
    Compare two runs.

    Models are loaded one after the other, so two models need no more memory than one. Raises
    `TextError` if source and references have different numbers of lines.
    """
    runs = (Run.open(first), Run.open(second))
    a, b = run_names([first, second])
    facts = [_facts(run) for run in runs]
    settings = [_settings(run) for run in runs]
    comparison = RunComparison(
        (a, b),
        {name: (facts[0][name], facts[1][name]) for name in facts[0]},
        {
            name: (settings[0].get(name), settings[1].get(name))
            for name in dict.fromkeys([*settings[0], *settings[1]])
            if settings[0].get(name) != settings[1].get(name)
        },
        tuple(_notes(*runs)),
    )
    return comparison if text is None else _with_translations(comparison, runs, text)


def _facts(run: Run) -> dict[str, Any]:
    """Return the size, cost and validation results of a run."""
    with torch.device("meta"):
        model = run.build()
    source, target = run.vocabularies
    facts: dict[str, Any] = dict.fromkeys(FACTS)
    facts |= {
        "parameters": parameter_count(model),
        "source_vocabulary": source,
        "target_vocabulary": target,
        "steps": max([0, *run.folder.steps()]),
    }
    if not run.folder.log.is_file():
        return facts
    history = read_history(run.folder.log)
    cost = training_cost(run, history)
    loss = history.best("valid_loss")
    facts |= {
        "steps": max(history.steps, facts["steps"]),
        "target_tokens": history.last("target_tokens"),
        "hours": cost["hours"],
        "counted_flops": cost.get("counted_flops"),
        "last_loss": history.last("loss"),
    }
    if loss is not None:
        facts |= {"valid_perplexity": perplexity(loss[0]), "valid_perplexity_step": loss[1]}
    for metric in score_metrics():
        if best := history.best(metric.key):
            facts |= {metric.key: best[0], f"{metric.key}_step": best[1]}
    return facts


def _settings(run: Run) -> dict[str, Any]:
    """Collect all settings under dotted names, with machine settings and data."""
    settings = flat_settings(run.config) | {
        f"choices.{key}": value for key, value in vars(read_machine_settings(run.folder)).items()
    }
    corpus = read_corpus(run.folder)
    settings |= {f"corpus.{side}": without_keys(files, "digest") for side, files in corpus.items()}
    return settings


def _notes(first: Run, second: Run) -> list[str]:
    """List figures that are not comparable."""
    notes = []
    if first.tokenizer.fingerprint != second.tokenizer.fingerprint:
        notes.append(
            "the tokenizers differ: losses and perplexities are per subword and cannot be compared"
        )
    corpora = [read_corpus(run.folder) for run in (first, second)]
    validated = [
        [corpus.get(f"valid_{side}") for side in ("source", "target")] for corpus in corpora
    ]
    known = all("digest" in file for sides in validated for files in sides for file in files or ())
    if not known:  # older runs recorded only the sizes of files
        validated = [
            [without_keys(files or [], "digest") for files in sides] for sides in validated
        ]
    if validated[0] != validated[1]:
        notes.append(
            "the runs were validated on different text: their validation results cannot be compared"
        )
    return notes


def _with_translations(
    comparison: RunComparison, runs: Sequence[Run], text: HeldOutText
) -> RunComparison:
    """Translate with both runs; add scores and differing sentences to the comparison."""
    source = AlignedTexts(one_file(text.source), "source")
    all_references = [source.read_reference(path) for path in expand(text.references)]
    scored = scored_lines(all_references)
    sources = select(source.lines, scored)
    references = [select(lines, scored) for lines in all_references]
    used, (first, second) = zip(*(_translate(run, sources, text) for run in runs), strict=True)
    languages = [run.config.data.target_language for run in runs]
    language = next(filter(is_language, languages), "") or written_language(
        [line for line in references[0] if line]
    )
    notes = [*comparison.notes, *filter(None, [unscored_note(len(scored), len(source.lines))])]
    if languages[0] != languages[1]:
        notes.append(
            f"the runs translate into different languages, {languages[0]} and {languages[1]}"
        )
    return replace(
        comparison,
        facts={**comparison.facts, "weights": used},
        notes=tuple(notes),
        scores=paired_scores(first, second, references, language),
        sentences=most_different(sources, first, second, references, scored)[: text.sentences],
    )


def _translate(run: Run, sources: Sequence[str], text: HeldOutText) -> tuple[str, list[str]]:
    """Translate with one run; return the name of its weights and the translations."""
    translator = Translator.load(
        run.folder.path,
        weights=text.weights,
        device=text.device,
        precision=text.precision,
        threads=text.threads,
    )
    outputs = translator.translate(sources, beam=text.beam)
    return run.checkpoint_folder(text.weights).name, [translation.text for translation in outputs]
