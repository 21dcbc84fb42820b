"""Whether a decoder can say a word again that lies far back."""

import math

import numpy as np
from jaxtyping import Float

from heedful.paper.claims.gradient import differentiable_model, gradient_norms
from heedful.paper.claims.models import LONG
from heedful.paper.claims.repeated_name import DISTANCES, NAMES
from heedful.paper.claims.statement import Checked
from heedful.paper.claims.trainings import Trainings
from heedful.runs.run import Run
from heedful.tokenization.tokenizer import Tokenizer
from heedful.translation.aligner import segment_text
from heedful.visualise.size_curves import SizeCurve, SizePanel

_KNOWN = 0.5
"""Mean probability of the right name from which on a model says it at a distance."""
_GRADIENTS = 20  # lines of each distance


def check_long(trained: Trainings) -> Checked:
    """Follow the probability of a repeated name, and the gradient at it, with distance."""
    found = {one.name: _probabilities(trained, one.name) for one in LONG}
    ours = found["transformer"]
    nearest, farthest = ours[:, 0].mean(), ours[:, -1].mean()
    loses, sentences = [], []
    for one in LONG[1:]:
        apart = ours - found[one.name]
        far, grown = apart[:, -1], apart[:, -1] - apart[:, 0]
        loses.append(all(each.mean() > _margin(each) for each in (far, grown)))
        sentences.append(
            f"{one.title}: {found[one.name][:, 0].mean():.2f} for the word before the last, "
            f"{found[one.name][:, -1].mean():.2f} for the {DISTANCES[-1]}th; the Transformer is "
            f"above it by {_interval(far)} there, and its lead has grown by {_interval(grown)}."
        )
    learnt = min(farthest, *(each[:, 0].mean() for each in found.values())) >= _KNOWN
    chance = f"Chance is {1 / len(NAMES):.1f}."
    doubt = f"A model is below {_KNOWN} at the nearest word, or the Transformer at the farthest."
    curves = [
        SizeCurve(
            one.title,
            tuple(found[one.name].mean(axis=0).tolist()),
            tuple(_margin(each) for each in found[one.name].T),
        )
        for one in LONG
    ]
    shares = [SizeCurve(one.title, _gradient_shares(trained, one.name)) for one in LONG]
    return Checked(
        all(loses) if learnt else None,
        "Probability of a name that must be said again, and that the source does not have: "
        f"Transformer {nearest:.2f} for the word before the last, {farthest:.2f} for the "
        f"{DISTANCES[-1]}th; {' '.join(sentences)} {chance if learnt else f'{chance} {doubt}'}",
        (
            SizePanel("words back", DISTANCES, tuple(curves), "probability of the name", "x"),
            SizePanel("words back", DISTANCES, tuple(shares), "gradient at the name", "both"),
        ),
    )


def _probabilities(trained: Trainings, name: str) -> Float[np.ndarray, "lines distances"]:
    """Compute the probability of each test line's last word, by the distance of its name."""
    translator, (sources, targets) = trained.translator(name), _test(trained)
    scores = translator.score(sources, targets)
    found = [
        math.exp(sum(line[token] for token in _words(translator.tokenizer, target)[-1]))
        for target, line in zip(targets, scores, strict=True)
    ]
    whole = len(found) // len(DISTANCES) * len(DISTANCES)
    return np.array(found[:whole]).reshape(-1, len(DISTANCES))


def _gradient_shares(trained: Trainings, name: str) -> tuple[float, ...]:
    """Compute the gradient of the last word at the name, over the mean of all words before it."""
    run = Run.open(trained.folder / "runs" / name)
    model = differentiable_model(run)
    shares: list[list[float]] = [[] for _ in DISTANCES]
    for line, (source, target) in enumerate(zip(*_test(trained), strict=True)):
        distance = DISTANCES[line % len(DISTANCES)]
        if line < _GRADIENTS * len(DISTANCES):
            words = _words(run.tokenizer, target)
            norms = gradient_norms(run, model, source, target, words[-1].start)
            at_name = max(float(norms[token]) for token in words[-1 - distance])
            shares[line % len(DISTANCES)].append(at_name / float(norms.mean()))
    return tuple(float(np.mean(each)) for each in shares)


def _test(trained: Trainings) -> tuple[list[str], list[str]]:
    corpus = trained.corpus
    return corpus.lines("test", corpus.source), corpus.lines("test", corpus.target)


def _words(tokenizer: Tokenizer, target: str) -> list[range]:
    """List the tokens of each word of a translation."""
    (ids,) = tokenizer.encode_target([target])
    pieces = tokenizer.pieces_target(ids)
    units = segment_text(tokenizer.target_kind, target, ids, pieces).units
    return [unit.pieces for unit in units]


def _margin(values: Float[np.ndarray, " lines"]) -> float:
    """Half the width of the 95 % confidence interval of a mean."""
    return 1.96 * float(np.std(values, ddof=1)) / math.sqrt(len(values))


def _interval(values: Float[np.ndarray, " lines"]) -> str:
    mean, margin = float(values.mean()), _margin(values)
    return f"{mean:.2f} (95 % interval {mean - margin:+.2f} to {mean + margin:+.2f})"
