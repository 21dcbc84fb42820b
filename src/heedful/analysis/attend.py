"""
Attention of a model for one sentence.

A record has the attention of every head, the best candidates at each step, and the beam:

::

    translator = Translator.load("runs/en-de")
    record = ExplorerRecord("a dog", (attend(translator, "A dog runs."),))
    write_explorer(record, Path("dog.html"))
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from heedful.alignment.words import SPACE
from heedful.analysis.plot import run_names
from heedful.arguments import read_texts
from heedful.data.coverage import input_warnings
from heedful.errors import RunFolderError, SettingError, TextError
from heedful.runs.run import Run
from heedful.search.coverage import coverage_penalty
from heedful.search.rules import DecodingRule, Renormalization
from heedful.search.scoring import best_candidates
from heedful.search.settings import SearchOptions
from heedful.search.trace import Trace
from heedful.translation.result import divergence_error
from heedful.translation.translator import Translator
from heedful.visualise.record import ExplorerRecord, ModelRecord, Node, Step

LONGEST = 200
"""Maximum number of subwords; the number of attention weights is proportional to its square."""

Warn = Callable[[str], None]


def open_models(
    run: str | Path,
    weights: str = "default",
    *,
    second_run: str | Path | None = None,
    second_weights: str = "",
    device: str = "auto",
    precision: str = "auto",
    threads: int = 0,
    reading: Literal["exact", "text"] | None = None,
) -> dict[str, Translator]:
    """Open one model, or two models to be shown side by side."""
    chosen = [(Path(run), weights)]
    if second_run is not None or second_weights:
        chosen.append((Path(second_run or run), second_weights or "default"))
    short = run_names([path for path, _ in chosen])
    if len({path.resolve() for path, _ in chosen}) < len(chosen):
        short = [short[0]] * len(chosen)
    names = [
        f"{name} ({_checkpoint_label(Run.open(path).checkpoint_folder(which))})"
        for name, (path, which) in zip(short, chosen, strict=True)
    ]
    if len(set(names)) < len(names):
        raise RunFolderError(
            f"a side-by-side view needs two different models, but both are {names[0]}; name "
            "another run with --beside or other weights with --beside-weights."
        )
    return {
        name: Translator.load(
            path,
            weights=which,
            device=device,
            precision=precision,
            threads=threads,
            reading=reading,
        )
        for name, (path, which) in zip(names, chosen, strict=True)
    }


def attend_all(
    models: dict[str, Translator],
    sentence: str,
    target: str | None = None,
    options: SearchOptions | None = None,
    warn: Warn | None = None,
) -> ExplorerRecord:
    """
    Record the attention of several models for a sentence.

    `target`: a translation for all models; if None, each model translates the sentence itself.
    """
    records = tuple(
        attend(translator, sentence, target, options, name=name, warn=warn)
        for name, translator in models.items()
    )
    return ExplorerRecord(" ".join(sentence.split()), records)


def attend(
    translator: Translator,
    sentence: str,
    target: str | None = None,
    options: SearchOptions | None = None,
    *,
    name: str = "",
    warn: Warn | None = None,
) -> ModelRecord:
    """
    Record the attention and search of one model for a sentence.

    `target`: a translation of the sentence; if None, the model's own translation. `name`: name of
    the model; if empty, the name of its run folder. The record has the attention, the best
    candidates at each step and, unless `target` is given, the beam.

    Raises `TextError` for a sentence or `target` that is empty, has several lines, or has more
    subwords than `LONGEST` or the run's limit. Raises `SettingError` for a model without attention,
    or for an ensemble.
    """
    check_shows_attention(translator)
    _check_line(sentence, "the sentence")
    read_texts("sentence", sentence)
    if target is not None:  # read before the reading becomes exact
        _check_line(target, "the given translation")
        (target,) = translator.run.read_targets(read_texts("target", target))
    task = translator.run.task
    sentence = translator.reader.seen(task.source_line(sentence))
    translator = Translator(translator.run.with_reading("exact"), *translator.models)
    (sentence,) = task.read_sources([sentence])
    source = _ids(translator, sentence, "the sentence")
    if warn is not None:
        for warning in input_warnings([sentence], [source], translator.tokenizer, least=0.0):
            warn(warning)
    trace: Trace | None = None
    settings = (options or SearchOptions()).over(translator.run.config.search)
    if target is None:
        trace = Trace()
        translation = translator.translate([sentence], options, observer=trace)[0]
        end = translator.model.end_token
        best, _ = trace.best()
        ended = best[-1:] == (end,)
        tokens = best[:-1] if ended else best
        text, score = translation.text, translation.score
    else:
        tokens, ended, text = (
            tuple(_ids(translator, target, "the given translation", "target")),
            True,
            target,
        )
        log_probabilities = translator.score([sentence], [target])[0]
        score = sum(log_probabilities) / settings.penalty.divisor(len(log_probabilities))
    record = _force_target(translator, source, tokens, ended)
    if target is not None and settings.coverage_penalty and record.cross is not None:
        score += coverage_penalty(torch.from_numpy(record.cross[0, 0]), settings.coverage_penalty)
    return replace(
        record,
        name=name or translator.run.folder.path.name,
        text=text,
        score=score,
        beam=() if trace is None else _beam(translator, trace),
    )


def check_shows_attention(translator: Translator) -> None:
    """Refuse models whose attention cannot be shown."""
    if len(translator.models) > 1:
        raise SettingError(
            "attention can be shown only for a single model, but got an ensemble of "
            f"{len(translator.models)} models; name one run, and optionally another with --beside."
        )
    model = translator.run.config.model
    if model.no_attention:
        raise SettingError(
            "attention is shown only for models that have it, but the decoder of "
            f"{translator.run.folder.path} has none ({model.no_attention}); name another run."
        )


def _checkpoint_label(checkpoint: Path) -> str:
    """Format the name of a checkpoint for readers: “average” or “step 1,000”."""
    kind, _, step = checkpoint.name.partition("-")
    return f"{kind} {int(step):,}" if step else kind


def _check_line(text: str, label: str) -> None:
    """Refuse a text that is empty or has several lines."""
    if not text.strip():
        raise TextError(f"{label} must have words, but is empty; write a sentence.")
    if len(text.strip().splitlines()) > 1:
        lines = len(text.strip().splitlines())
        raise TextError(
            f"{label} must be one line, but has {lines:,} lines; give one line at a time."
        )


def _ids(translator: Translator, text: str, label: str, side: str = "source") -> list[int]:
    """Tokenize a sentence; refuse it if it is empty, has several lines or is too long."""
    _check_line(text, label)
    tokenizer = translator.tokenizer
    if side == "source":
        (ids,) = tokenizer.encode_source(translator.run.read_sources([text]))
    else:
        (ids,) = tokenizer.encode_target(translator.run.read_targets([text]))
    limit = min(LONGEST, translator.run.config.search.max_source_length)
    if len(ids) > limit:
        why = (
            "search.max_source_length of the run"
            if limit < LONGEST
            else "the number of attention weights grows with the square of the length"
        )
        raise TextError(
            f"{label} must have at most {limit:,} subwords to be shown ({why}), but has "
            f"{len(ids):,}; shorten it."
        )
    return ids


def _force_target(
    translator: Translator, source: Sequence[int], target: Sequence[int], ended: bool
) -> ModelRecord:
    """Record a model's attention on a pair, and the best candidates at each step."""
    run, tokenizer = translator.run, translator.tokenizer
    attention = translator.attention_of(source, target)
    # A translation that was cut at the length limit has no end symbol, so it has no final step.
    steps = max(1, len(target) + ended)
    batch = translator.collator.batch([source], [target]).to(translator.model.device)
    rules: list[DecodingRule] = [run.allowed]
    if run.config.search.renormalise:
        rules.append(Renormalization())
    candidates = best_candidates(
        translator.model, batch.source, batch.target_in, batch.target_out, rules=rules
    )[:steps]
    pieces = iter(tokenizer.pieces_target([token for row in candidates for token, _ in row]))
    words = attention.source_tokens[: len(source)]
    mark = "" if tokenizer.kind == "word" else SPACE
    return ModelRecord(
        name="",
        source=attention.source_tokens,
        target=attention.target_tokens[:steps],
        start=tokenizer.pieces_target([int(batch.target_in[0, 0])])[0],
        encoder=_weights(attention.encoder),
        decoder=_weights(attention.decoder[:, :, :steps, :steps]),
        cross=_weights(attention.cross[:, :, :steps]),
        steps=tuple(
            Step(tuple((next(pieces), probability) for _, probability in row)) for row in candidates
        ),
        phrases=run.task.phrases(target, words, mark),
    )


def _weights(weights: np.ndarray) -> np.ndarray | None:
    """Return the weights, or None if there are no layers; refuse NaN and infinite weights."""
    if not len(weights):
        return None
    if not math.isfinite(float(weights.sum())):
        raise divergence_error("its attention is not finite")
    return weights


def _beam(translator: Translator, trace: Trace) -> tuple[tuple[Node, ...], ...]:
    """Convert a search trace to nodes, with tokens as text."""
    tree = trace.tree()
    pieces = iter(
        translator.tokenizer.pieces_target([branch.token for step in tree for branch in step])
    )
    return tuple(
        tuple(
            Node(
                next(pieces),
                branch.parent,
                branch.log_probability,
                branch.score,
                branch.status,
                branch.why,
            )
            for branch in step
        )
        for step in tree
    )
