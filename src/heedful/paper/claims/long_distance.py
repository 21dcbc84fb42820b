"""Whether a decoder can say a word again that lies far back."""

import math

import numpy as np
from jaxtyping import Float

from heedful.paper.claims.gradient import differentiable_model, gradient_norms
from heedful.paper.claims.models import LONG
from heedful.paper.claims.repeated_name import DISTANCES, NAMES
from heedful.paper.claims.statement import Checked
from heedful.paper.claims.trainings import Trainings
from heedful.paper.estimate import Estimate
from heedful.runs.run import Run
from heedful.tokenization.tokenizer import Tokenizer
from heedful.translation.aligner import segment_text
from heedful.visualise.size_curves import SizeCurve, SizePanel

_KNOWN = 0.5
"""Mean probability of the right name from which on a model says it at a distance."""
_KEPT = 0.1
"""A model keeps a name if the Transformer's lead at the farthest word is surely below this."""
_GRADIENTS = 20  # lines of each distance


def check_long(trained: Trainings) -> Checked:
    """Follow the probability of a repeated name, and the gradient at it, with distance."""
    found = {one.name: _probabilities(trained, one.name) for one in LONG}
    ours = found["transformer"]
    lost, kept, sentences = [], [], []
    for one in LONG[1:]:
        lead = ours - found[one.name]
        far, grown = Estimate.of_many(lead[:, -1]), Estimate.of_many(lead[:, -1] - lead[:, 0])
        lost.append(far.interval[0] > 0 and grown.interval[0] > 0)
        kept.append(far.interval[1] < _KEPT)
        sentences.append(
            f"{one.title}: {found[one.name][:, 0].mean():.2f} and "
            f"{found[one.name][:, -1].mean():.2f}; the Transformer's lead is {_said(far)} at the "
            f"farthest, {_said(grown)} more than at the nearest."
        )
    learnt = min(ours[:, -1].mean(), *(each[:, 0].mean() for each in found.values())) >= _KNOWN
    doubt = (
        f" A model is below {_KNOWN} at the nearest word, or the Transformer at the farthest: "
        "conclude nothing before a longer training."
    )
    curves = [
        SizeCurve(
            one.title,
            tuple(found[one.name].mean(axis=0).tolist()),
            tuple(Estimate.of_many(each).margin for each in found[one.name].T),
        )
        for one in LONG
    ]
    shares = [SizeCurve(one.title, _gradient_shares(trained, one.name)) for one in LONG]
    return Checked(
        (True if all(lost) else False if any(kept) else None) if learnt else None,
        "Probability of the name that a translation must end with because it stood "
        f"{DISTANCES[0]} or {DISTANCES[-1]} words before, while the source does not have it "
        f"(chance is {1 / len(NAMES):.1f}): {LONG[0].title} {ours[:, 0].mean():.2f} and "
        f"{ours[:, -1].mean():.2f}; {' '.join(sentences)}{'' if learnt else doubt} A convolution "
        "of 2 layers of 3 reads 5 tokens back, whatever it learns; one of 5 layers of 9 reads 41.",
        (
            SizePanel("words between", DISTANCES, tuple(curves), "probability of the name", "x"),
            SizePanel("words between", DISTANCES, tuple(shares), "gradient at the name", "x"),
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
            at_name = max(float(norms[token]) for token in words[-2 - distance])
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


def _said(lead: Estimate) -> str:
    low, high = lead.interval
    return f"{lead.value:.2f} (95 % interval {low:+.2f} to {high:+.2f})"
