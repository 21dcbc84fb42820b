"""Claims that small models are trained for."""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from heedful.model.initialise import initialise
from heedful.paper.claims.divergence import divergence
from heedful.paper.claims.gradient import differentiable_model, gradient_norms
from heedful.paper.claims.statement import Checked
from heedful.paper.claims.trainings import Trainings
from heedful.paper.systems.measured import CurvePoint
from heedful.paper.systems.system import TableSystem
from heedful.paper.tables import ScoreDifference
from heedful.runs.run import Run
from heedful.translation.translator import Translator
from heedful.visualise.size_curves import SizeCurve, SizePanel

_LAYERS = ("model.encoder_layers=2", "model.decoder_layers=2")
# With the usual range of 0.1 so narrow a model begins with almost no logits, and hundreds of steps
# teach it nothing; nor do they at the Transformer's learning rate.
_RECURRENT = (
    *_LAYERS,
    "model.encoder=recurrent",
    "model.decoder=recurrent",
    "model.recurrent.initial_range=0.3",
    "train.learning_rate=4e-3",
)
_CONVOLUTIONAL = (
    *("model.encoder=convs2s", "model.decoder=convs2s", "model.positions=learned"),
    *("model.convs2s.encoder_layers=2x(128,3)", "model.convs2s.decoder_layers=2x(128,3)"),
)
_WIDTHS, _HEADS = (16, 64, 256), (2, 4, 8)
_SCORES = ("scaled", "unscaled", "additive")
_SENTENCES = 50


def _transformer(name: str, title: str, *settings: str, heads: int = 4) -> TableSystem:
    """Change a small Transformer."""
    return TableSystem(name, title, (*_LAYERS, "model.d_ff=512", f"model.heads={heads}", *settings))


def _encoder(name: str, *settings: str) -> TableSystem:
    """Put an encoder before a Transformer's decoder."""
    sizes = ("model.d_ff=512", "model.heads=4", "model.decoder_layers=2")
    return TableSystem(name, name, (*sizes, *settings))


MASK = (
    _transformer("transformer", "Transformer"),
    _transformer("no-mask", "without mask", "model.causal_mask=false"),
)
ATTENTION = (
    TableSystem("attending", "with attention", _RECURRENT),
    TableSystem("blind", "without attention", (*_RECURRENT, "model.recurrent.score=none")),
)
LONG = (
    _transformer("transformer", "Transformer"),
    TableSystem("recurrent", "recurrent with attention", _RECURRENT),
    TableSystem("convolutional", "convolutional with attention", _CONVOLUTIONAL),
)
ENCODERS = (
    _encoder("self-attention", "model.encoder_layers=2"),
    _encoder(
        "recurrent",
        *("model.encoder_layers=2", "model.encoder=recurrent"),
        "model.recurrent.encoder_hidden_size=64",  # of each direction
    ),
    _encoder(
        "convolution",
        *("model.encoder_layers=2", "model.attention.encoder=convolution"),
        "model.attention.window=3",
    ),
    _encoder("average", "model.encoder=average"),
    _encoder("sum", "model.encoder=sum"),
)
SCORES = tuple(
    _transformer(
        f"{score}-{width}",
        f"{score}, d_k {width}",
        *(f"model.d_k={width}", f"model.attention.score={score}"),
        heads=1,
    )
    for width in _WIDTHS
    for score in _SCORES
)
HEADS = tuple(_transformer(f"heads-{count}", f"{count} heads", heads=count) for count in _HEADS)
COST = LONG[:2]


def check_mask(trained: Trainings) -> Checked:
    """Train a decoder that sees what it is to predict."""
    masked, unmasked = (trained.systems[one.name] for one in MASK)
    apart = trained.difference(masked.name, unmasked.name)
    steps = tuple(point.step for point in masked.curve)
    curves = [
        [(getattr(point, value)) for point in one.curve]
        for value in ("perplexity", "bleu")
        for one in (masked, unmasked)
    ]
    return Checked(
        unmasked.curve[-1].perplexity < masked.curve[-1].perplexity and apart.interval[0] > 0,
        f"Without mask the perplexity of known translations falls to "
        f"{unmasked.curve[-1].perplexity:.2f} (with mask {masked.curve[-1].perplexity:.2f}), but "
        f"what it translates itself has {unmasked.bleu:.1f} BLEU. {_said(apart)}",
        (
            SizePanel("steps", steps, _named(MASK, curves[:2]), "perplexity of known words"),
            SizePanel("steps", steps, _named(MASK, curves[2:]), "BLEU, validation", "x"),
        ),
    )


def check_attention(trained: Trainings) -> Checked:
    """Take the attention of a recurrent translator away."""
    apart = trained.difference("attending", "blind")
    longest = trained.difference("attending", "blind", longest=True)
    growth = trained.growth("attending", "blind")
    return Checked(
        longest.interval[0] > 0 and growth.interval[0] > 0,
        f"{_said(apart)} In the quarter of the longest sentences the difference is "
        f"{longest.difference:+.1f} ({_interval(longest)}). {_grown(growth)}",
        (_by_length(trained, ATTENTION),),
    )


def check_long(trained: Trainings) -> Checked:
    """Follow quality and gradients into long sentences."""
    apart = [trained.difference("transformer", one.name, longest=True) for one in LONG[1:]]
    grown = [trained.growth("transformer", one.name) for one in LONG[1:]]
    shares = [_first_word_shares(trained, one.name) for one in LONG]
    return Checked(
        all(one.interval[0] > 0 for one in (*apart, *grown)),
        "In the quarter of the longest sentences: "
        + " ".join(f"{_said(one)} {_grown(more)}" for one, more in zip(apart, grown, strict=True))
        + " Where the other panel has 1, the last word depends on the source's first as on any "
        "other.",
        (
            _by_length(trained, LONG),
            SizePanel(
                "words",
                tuple(trained.parts),
                _named(LONG, shares),
                "gradient at the first word",
                "none",
            ),
        ),
    )


def check_encoders(trained: Trainings) -> Checked:
    """Put five encoders before one decoder."""
    best, *others = (one.name for one in ENCODERS)
    apart = [trained.difference(best, name) for name in others]
    return Checked(
        all(one.interval[0] > 0 for one in apart),
        " ".join(_said(one) for one in apart)
        + " Weights: "
        + ", ".join(f"{one.parameters:,} ({one.title})" for one in trained.systems.values())
        + ".",
        (_by_length(trained, ENCODERS),),
    )


def check_scores(trained: Trainings) -> Checked:
    """Train one head with three scores at growing widths."""
    apart = {
        width: trained.difference(f"additive-{width}", f"unscaled-{width}") for width in _WIDTHS
    }
    systems = [[trained.systems[f"{score}-{width}"] for width in _WIDTHS] for score in _SCORES]
    curves = [
        [[getattr(one, value) for one in each] for each in systems]
        for value in ("perplexity", "bleu")
    ]
    panels = [
        SizePanel(
            "d_k",
            _WIDTHS,
            tuple(SizeCurve(*pair) for pair in zip(_SCORES, map(tuple, found), strict=True)),
            label,
            "x",
        )
        for label, found in zip(("perplexity, validation", "BLEU"), curves, strict=True)
    ]
    return Checked(
        apart[_WIDTHS[-1]].interval[0] > 0,
        " ".join(_said(one) for one in apart.values()),
        tuple(panels),
    )


def check_heads(trained: Trainings) -> Checked:
    """Measure how much the heads of a layer differ, before and after training."""
    found: dict[str, list[list[float]]] = {"trained": [], "before training": []}
    for system in HEADS:
        translator = trained.translator(system.name)
        fresh = Translator(translator.run, translator.run.build().eval())
        initialise(fresh.models[0], translator.run.config.train.seed)  # as this training began
        for name, model in zip(found, (translator, fresh), strict=True):
            found[name].append(_head_divergences(trained, model))
    gains = [np.subtract(*pair) for pair in zip(*found.values(), strict=True)]
    margins = [1.96 * float(np.std(gain, ddof=1)) / math.sqrt(len(gain)) for gain in gains]
    means = {name: tuple(float(np.mean(one)) for one in each) for name, each in found.items()}
    curves = tuple(SizeCurve(name, each) for name, each in means.items())
    bleu = SizeCurve("trained", tuple(trained.systems[one.name].bleu for one in HEADS))
    return Checked(
        all(np.mean(gain) > margin for gain, margin in zip(gains, margins, strict=True)),
        f"Two heads of a layer lie {means['trained'][-1]:.2f} bits apart (Jensen-Shannon) with "
        f"{_HEADS[-1]} heads and {means['trained'][0]:.2f} with {_HEADS[0]}; before training "
        f"{means['before training'][-1]:.2f} and {means['before training'][0]:.2f} "
        f"({_SENTENCES} sentences; 0 is the same attention, 1 is none in common).",
        (
            SizePanel("heads", _HEADS, curves, "bits between two heads", "x"),
            SizePanel("heads", _HEADS, (bleu,), "BLEU", "x"),
        ),
    )


def check_cost(trained: Trainings) -> Checked:
    """Read off what each model has spent where it first reaches a quality."""
    ours, theirs = (trained.systems[one.name].curve for one in COST)
    top = min(max(point.bleu for point in curve) for curve in (ours, theirs))
    if top < 1:
        steps = tuple(point.step for point in ours)
        bleus = [[point.bleu for point in curve] for curve in (ours, theirs)]
        panel = SizePanel("steps", steps, _named(COST, bleus), "BLEU, validation", "none")
        return Checked(None, "The models do not both reach 1 BLEU in validation.", (panel,))
    levels = tuple(sorted({max(1, int(top * part)) for part in (0.25, 0.5, 0.75, 0.9)}))
    curves = {
        kind: [[_cost_of(curve, kind, level) for level in levels] for curve in (ours, theirs)]
        for kind in ("flops", "seconds")
    }
    times = {kind: found[1][-1] / found[0][-1] for kind, found in curves.items()}
    return Checked(
        min(times.values()) > 1,
        f"For {levels[-1]} BLEU the recurrent model takes {times['flops']:.1f} times as many "
        f"operations as the Transformer, and {times['seconds']:.1f} times as long on this machine "
        "(one training each, so there is no interval).",
        (
            SizePanel("BLEU, validation", levels, _named(COST, curves["flops"]), "operations", "y"),
            SizePanel("BLEU, validation", levels, _named(COST, curves["seconds"]), "seconds", "y"),
        ),
    )


def _cost_of(curve: Sequence[CurvePoint], kind: str, level: int) -> float:
    """Find what was spent when BLEU first reached a level, between validations in a line."""
    spent, bleu = 0.0, 0.0
    for point in curve:
        cost = float(getattr(point, kind))
        if point.bleu >= level:
            return spent + (cost - spent) * (level - bleu) / (point.bleu - bleu)
        spent, bleu = cost, point.bleu
    raise AssertionError(f"{level} is never reached")


def _by_length(trained: Trainings, systems: Sequence[TableSystem]) -> SizePanel:
    """Lay out BLEU by the length of the source."""
    curves = [trained.bleu_by_length(one.name) for one in systems]
    return SizePanel("words", tuple(trained.parts), _named(systems, curves), "BLEU", "none")


def _head_divergences(trained: Trainings, translator: Translator) -> list[float]:
    """Compute the mean divergence between two heads of a layer for every sentence."""
    corpus, found = trained.corpus, []
    pairs = zip(*(corpus.lines("test", one) for one in (corpus.source, corpus.target)), strict=True)
    for source, target in itertools.islice(pairs, _SENTENCES):
        attention = translator.attend(source, target)
        layers = [*attention.encoder, *attention.cross]
        found.append(
            float(
                np.mean(
                    [
                        divergence(first, second)
                        for layer in layers
                        for first, second in itertools.combinations(layer, 2)
                    ]
                )
            )
        )
    return found


def _first_word_shares(trained: Trainings, name: str) -> list[float]:
    """Compute the gradient of the last word at the source's first, over the mean of all words."""
    run, corpus = Run.open(trained.folder / "runs" / name), trained.corpus
    model = differentiable_model(run)
    sources, targets = (corpus.lines("test", one) for one in (corpus.source, corpus.target))
    shares = []
    for lines in trained.parts.values():
        norms = [
            gradient_norms(run, model, sources[line], targets[line])
            for line in lines[-_SENTENCES:].tolist()
        ]
        shares.append(float(np.mean([float(one[0] / one.mean()) for one in norms])))
    return shares


def _named(
    systems: Sequence[TableSystem], values: Sequence[Sequence[float]]
) -> tuple[SizeCurve, ...]:
    return tuple(
        SizeCurve(one.title, tuple(each)) for one, each in zip(systems, values, strict=True)
    )


def _said(apart: ScoreDifference) -> str:
    """Say how far one system is from another."""
    return f"{apart.better} minus {apart.worse}: {apart.difference:+.1f} BLEU ({_interval(apart)})."


def _grown(growth: ScoreDifference) -> str:
    """Say how much further apart two systems are in the longest sentences."""
    return (
        f"That is {growth.difference:+.1f} beside the other three quarters ({_interval(growth)})."
    )


def _interval(apart: ScoreDifference) -> str:
    low, high = apart.interval
    return f"95 % interval {low:+.1f} to {high:+.1f}"
