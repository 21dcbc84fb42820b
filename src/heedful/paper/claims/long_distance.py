"""Measurement of whether a decoder can repeat a word after a long distance."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from heedful.experiments.estimate import Estimate
from heedful.experiments.page import capital
from heedful.paper.claims.gradient import differentiable_model, gradient_norms
from heedful.paper.claims.models import LONG
from heedful.paper.claims.repeated_name import DISTANCES, NAMES
from heedful.paper.claims.statement import Evidence, Measured, mean_curve
from heedful.paper.claims.trainings import Trainings
from heedful.runs.run import Run
from heedful.tokenization.tokenizer import Tokenizer
from heedful.translation.aligner import segment_text
from heedful.translation.translator import Translator
from heedful.visualise.size_curves import SizeCurve, SizePanel

_KNOWN = 0.5
"""Minimum mean probability of the correct name at which a model counts as knowing the name."""
_KEPT = 0.1
"""Largest drop of a name's probability, at `DISTANCES[-1]`, that counts as keeping the name."""
_AXIS = "distance in words"
_GRADIENTS = 20  # number of lines of each distance for which gradients are computed


def measure_long_distance(trained: Trainings) -> Measured:
    """Measure the probability of a repeated name, and the gradient at the name, by distance."""
    chances = {model.name: _probabilities(trained, model.name) for model in LONG}
    falls = {name: Estimate.of(rows[:, 0] - rows[:, -1]) for name, rows in chances.items()}
    sentences = [
        capital(
            f"{model.title}: {chances[model.name][:, 0].mean():.3f} and "
            f"{chances[model.name][:, -1].mean():.3f}, "
            f"which is {_format_fall(falls[model.name])} less."
        )
        for model in LONG
    ]
    evidence = [_loses(falls[model.name]) for model in LONG]
    # The claim is that self-attention does not lose the name.
    evidence[0] = None if evidence[0] is None else not evidence[0]
    lowest = min(float(rows[:, 0].mean()) for rows in chances.values())
    learned = lowest >= _KNOWN
    doubt = (
        "At the shortest distance, a model gives the correct name a probability of only "
        f"{lowest:.2f}, below {_KNOWN}: train longer before drawing conclusions."
    )
    curves = [mean_curve(model.title, chances[model.name].T.tolist()) for model in LONG]
    shares = [SizeCurve(model.title, _gradient_shares(trained, model.name)) for model in LONG]
    return Measured(
        evidence if learned else [None],
        [_headline(model.title, falls[model.name]) for model in LONG] if learned else [doubt],
        "Each translation ends with a name that the source does not contain. The numbers are the "
        f"probability of the correct name among all names; chance is {1 / len(NAMES):.1f}. For "
        f"the first number of each pair, {DISTANCES[0]} word separates the name from its previous "
        f"occurrence; for the second, {DISTANCES[-1]} words. "
        f"{' '.join(sentences)}{'' if learned else f' {doubt}'} A model keeps the name if the "
        f"whole interval of this difference is below {_KEPT:g}. It loses the name if the whole "
        f"interval is above {_KEPT:g}. A convolution with 2 layers of kernel width 3 sees only 5 "
        "tokens, whatever it learns; a convolution with 5 layers of width 9 sees 41. "
        f"{_practice(trained)} Weights: "
        + "; ".join(f"{model.title} {trained.systems[model.name].parameters:,}" for model in LONG)
        + ".",
        (
            SizePanel(_AXIS, DISTANCES, tuple(curves), "probability of the name", "x"),
            SizePanel(_AXIS, DISTANCES, tuple(shares), "gradient at the name", "x"),
        ),
    )


def _loses(fall: Estimate) -> Evidence:
    """Return True if a model loses the name, False if not, None if the interval allows both."""
    low, high = fall.interval
    return True if low > _KEPT else False if high < _KEPT else None


def _probabilities(trained: Trainings, name: str) -> Float[np.ndarray, "lines distances"]:
    """
    Compute the probability of each test line's last word relative to all names, by distance.

    Only names are candidates, because a model may predict that a name follows without predicting
    the right name.
    """
    translator, (sources, targets) = trained.translator(name), _test(trained)
    begun = [target.rpartition(" ")[0] for target in targets]
    names = [target.rpartition(" ")[2] for target in targets]
    every = [*dict.fromkeys((*NAMES, *names))]
    chances = {
        candidate: _last_words(translator, sources, [f"{before} {candidate}" for before in begun])
        for candidate in every
    }
    shares = [
        chances[candidate][line] / sum(values[line] for values in chances.values())
        for line, candidate in enumerate(names)
    ]
    complete = len(shares) // len(DISTANCES) * len(DISTANCES)
    return np.array(shares[:complete]).reshape(-1, len(DISTANCES))


def _last_words(
    translator: Translator, sources: Sequence[str], targets: Sequence[str]
) -> list[float]:
    """Compute the probability of the last word of each translation."""
    scores = translator.score(sources, targets)
    return [
        math.exp(sum(line[token] for token in _words(translator.tokenizer, target)[-1]))
        for target, line in zip(targets, scores, strict=True)
    ]


def _practice(trained: Trainings) -> str:
    """State how often the training text repeats a name at the smallest and largest distances."""
    counts = [0] * len(DISTANCES)
    for number, line in enumerate(trained.corpus.lines("train", trained.corpus.target)):
        repeated = sum(word in NAMES for word in line.split()) - 1
        counts[number % len(DISTANCES)] += repeated
    return (
        f"The training text repeats a name {counts[0]:,} times after {DISTANCES[0]} word, and "
        f"{counts[-1]:,} times after {DISTANCES[-1]} words."
    )


def _gradient_shares(trained: Trainings, name: str) -> tuple[float, ...]:
    """Return the last word's gradient at the name, relative to the mean over earlier tokens."""
    run = Run.open(trained.folder / "runs" / name)
    model = differentiable_model(run)
    shares: list[list[float]] = [[] for _ in DISTANCES]
    for line, (source, target) in enumerate(zip(*_test(trained), strict=True)):
        distance = DISTANCES[line % len(DISTANCES)]
        if line < _GRADIENTS * len(DISTANCES):
            words = _words(run.tokenizer, target)
            norms = gradient_norms(run, model, source, target, words[-1].start)
            at_name = max(float(norms[token]) for token in words[-2 - distance])
            shares[line % len(DISTANCES)].append(at_name / float(norms.mean()))
    return tuple(float(np.mean(values)) for values in shares)


def _test(trained: Trainings) -> tuple[list[str], list[str]]:
    corpus = trained.corpus
    return corpus.lines("test", corpus.source), corpus.lines("test", corpus.target)


def _words(tokenizer: Tokenizer, target: str) -> list[range]:
    """List the range of tokens of each word in a translation."""
    (ids,) = tokenizer.encode_target([target])
    pieces = tokenizer.pieces_target(ids)
    units = segment_text(tokenizer.models[1], target, ids, pieces).units
    return [unit.pieces for unit in units]


def _headline(title: str, fall: Estimate) -> str:
    low, high = fall.interval
    return capital(
        f"{title}: from {DISTANCES[0]} to {DISTANCES[-1]} words, the probability of the name falls "
        f"by {fall.value:.2f} ({low:.2f} to {high:.2f})."
    )


def _format_fall(fall: Estimate) -> str:
    low, high = fall.interval
    return f"{fall.value:.3f} (95% interval {low:+.2f} to {high:+.2f})"
