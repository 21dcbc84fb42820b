"""Claims that small models are trained for."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Float

from heedful.experiments.page import LEARNT
from heedful.model.initialise import initialise
from heedful.model.layers import DecoderLayer, EncoderLayer
from heedful.paper.claims.comparisons import (
    compare_bleu,
    say_growth,
    say_interval,
    still_rising,
    useless,
)
from heedful.paper.claims.divergence import different_heads, entropy
from heedful.paper.claims.models import (
    ATTENTION,
    BATCHES,
    COST,
    ENCODERS,
    HEAD_COUNTS,
    HEADS,
    KINDS_OF_SCORE,
    LONG,
    MASK,
    NORMS,
    TUNED,
    WIDTHS,
)
from heedful.paper.claims.statement import Checked, decide
from heedful.paper.claims.trainings import Trainings
from heedful.paper.estimate import Estimate
from heedful.paper.systems.measured import CurvePoint
from heedful.paper.systems.system import TableSystem
from heedful.paper.systems.table2 import PUBLISHED
from heedful.translation.translator import Translator
from heedful.visualise.size_curves import SizeCurve, SizePanel

_SENTENCES, _FOR_ENTROPY = 50, 20
_HEADS_OF = ("trained", "before training", "before training, as sharp")
_MOST_SHARPENED, _HALVINGS = 1000.0, 16
_PARTS_OF_TOP = (0.25, 0.5, 0.75, 0.9, 0.98)
"""Of the best BLEU that all reach: the qualities whose cost is compared."""
_AS_LOW = 1.1
"""Two perplexities are alike within this factor."""


def check_mask(trained: Trainings) -> Checked:
    """Train a decoder that sees what it is to predict."""
    masked, unmasked = (trained.systems[one.name] for one in MASK)
    steps = tuple(point.step for point in masked.curve)
    curves = [
        [(getattr(point, value)) for point in one.curve]
        for value in ("perplexity", "bleu")
        for one in (masked, unmasked)
    ]
    falls = unmasked.curve[-1].perplexity < _AS_LOW * masked.curve[-1].perplexity
    return Checked(
        unmasked.bleu < LEARNT if falls else None,
        f"Without mask the perplexity of known translations falls to "
        f"{unmasked.curve[-1].perplexity:.2f} (with mask {masked.curve[-1].perplexity:.2f}), but "
        f"what it translates itself has {unmasked.bleu:.1f} BLEU. With mask it is "
        f"{masked.bleu:.1f}.",
        (
            SizePanel("steps", steps, _named(MASK, curves[:2]), "perplexity of known words"),
            SizePanel("steps", steps, _named(MASK, curves[2:]), "BLEU, validation", "x"),
        ),
    )


def check_attention(trained: Trainings) -> Checked:
    """Take the attention of a recurrent translator away."""
    names, panels = ("attending", "blind"), (_by_length(trained, ATTENTION),)
    compared, rising = compare_bleu(trained, *names), still_rising(trained, names)
    if useless(trained, names):
        return Checked(None, compared, panels)
    longest, growth = trained.difference(*names, longest=True), trained.growth(*names)
    grown = "All lines are equally long." if growth is None else say_growth(growth)
    return Checked(
        None if growth is None or rising else decide(longest.interval, growth.interval),
        f"{compared} In the quarter of the longest sentences the difference is "
        f"{longest.difference:+.1f} ({say_interval(longest.interval)}). {grown}{rising}",
        panels,
    )


def check_encoders(trained: Trainings) -> Checked:
    """Put five encoders before one decoder."""
    best, *others = (one.name for one in ENCODERS)
    names = (best, *others)
    rising = still_rising(trained, names)
    is_open = rising or useless(trained, names)
    return Checked(
        None if is_open else decide(*(trained.difference(best, name).interval for name in others)),
        " ".join(compare_bleu(trained, best, name) for name in others)
        + " Weights: "
        + ", ".join(f"{one.parameters:,} ({one.title})" for one in trained.systems.values())
        + f".{rising}",
        (_by_length(trained, ENCODERS),),
    )


def check_batch_sizes(trained: Trainings) -> Checked:
    """Train both norms with batches of growing size, on as many tokens."""
    pairs = {tokens: (f"layer-{tokens}", f"batch-{tokens}") for tokens in BATCHES}
    small, large = pairs[BATCHES[0]], pairs[BATCHES[-1]]
    systems = {norm: [trained.systems[f"{norm}-{one}"] for one in BATCHES] for norm in NORMS}
    curves = {
        value: tuple(
            SizeCurve(f"{norm} norm", tuple(getattr(one, value) for one in each))
            for norm, each in systems.items()
        )
        for value in ("bleu", "perplexity")
    }
    holds, compared, rising = _decide_by_lead(
        *(trained, pairs.values(), small, large),
        f"From {BATCHES[-1]} to {BATCHES[0]} tokens a batch, layer norm's lead",
    )
    return Checked(
        holds,
        f"{compared} A translation of the test has {_words(trained):.1f} words, so that "
        f"{BATCHES[0]} tokens are few sentences.{rising}",
        (
            SizePanel("target tokens of a batch", BATCHES, curves["bleu"], "BLEU", "x"),
            SizePanel(
                "target tokens of a batch", BATCHES, curves["perplexity"], "perplexity, validation"
            ),
        ),
    )


def check_scores(trained: Trainings) -> Checked:
    """Train one head with three scores at growing widths."""
    pairs = {width: (f"additive-{width}", f"unscaled-{width}") for width in WIDTHS}
    systems = [
        [trained.systems[f"{score}-{width}"] for width in WIDTHS] for score in KINDS_OF_SCORE
    ]
    curves = [
        [[getattr(one, value) for one in each] for each in systems]
        for value in ("perplexity", "bleu")
    ]
    panels = [
        SizePanel(
            "d_k",
            WIDTHS,
            tuple(SizeCurve(*pair) for pair in zip(KINDS_OF_SCORE, map(tuple, found), strict=True)),
            label,
            "x",
        )
        for label, found in zip(("perplexity, validation", "BLEU"), curves, strict=True)
    ]
    weights = [trained.systems[f"additive-{width}"].parameters for width in WIDTHS]
    holds, compared, rising = _decide_by_lead(
        *(trained, pairs.values(), pairs[WIDTHS[-1]], pairs[WIDTHS[0]]),
        f"From {WIDTHS[0]} to {WIDTHS[-1]} the lead",
    )
    return Checked(
        holds,
        f"{compared} Wider heads have more weights, here {weights[0]:,} to {weights[-1]:,}."
        f"{rising}",
        tuple(panels),
    )


def _decide_by_lead(
    trained: Trainings,
    pairs: Iterable[tuple[str, str]],
    deciding: tuple[str, str],
    beside: tuple[str, str],
    lead: str,
) -> tuple[bool | None, str, str]:
    """
    Decide by a pair's difference, and by how much larger it is than that of another pair.

    Returns the decision, the sentences about all pairs, and one about what still learns.
    """
    compared = " ".join(compare_bleu(trained, *pair) for pair in pairs)
    names = (*deciding, *beside)
    rising = still_rising(trained, names)
    if useless(trained, names):
        return None, compared, rising
    grown, interval = trained.growth_between(deciding, beside)
    compared += f" {lead} grows by {grown:.1f} BLEU ({say_interval(interval)})."
    holds = None if rising else decide(trained.difference(*deciding).interval, interval)
    return holds, compared, rising


def check_heads(trained: Trainings) -> Checked:
    """Count the different heads of a layer, trained, before training, and sharpened as much."""
    found: dict[str, list[list[float]]] = {name: [] for name in _HEADS_OF}
    for system in HEADS:
        translator = trained.translator(system.name)
        fresh, sharp = (_untrained(translator) for _ in range(2))
        sharpen(sharp, _entropies(trained, translator), partial(_entropies, trained))
        for name, model in zip(_HEADS_OF, (translator, fresh, sharp), strict=True):
            found[name].append(_different_heads(trained, model))
    after, before, as_sharp = found.values()
    learnt, more = (
        decide(
            *(
                Estimate.of_many(np.subtract(*pair)).interval
                for pair in zip(after, other, strict=True)
            )
        )
        for other in (before, as_sharp)
    )
    means = {name: tuple(float(np.mean(one)) for one in each) for name, each in found.items()}
    curves = tuple(SizeCurve(name, each) for name, each in means.items())
    bleu = SizeCurve("trained", tuple(trained.systems[one.name].bleu for one in HEADS))
    counted = {name: ", ".join(f"{mean:.2f}" for mean in each) for name, each in means.items()}
    return Checked(
        True if more else False if learnt is False else None,
        f"Of {', '.join(map(str, HEAD_COUNTS))} heads of a layer {counted['trained']} are "
        f"different after training and {counted['before training']} before (two to the power of "
        f"their Jensen-Shannon divergence; {len(after[0])} sentences; of the encoder and of the "
        "decoder's attention to the source). Sharpness alone makes heads differ: of untrained "
        "ones, with the queries of each layer multiplied until its attention is as sharp as the "
        "trained one, "
        f"{counted['before training, as sharp']} are. Each of these looks somewhere else, at "
        "random, so hardly any heads can differ more. More than these is for the statement, and "
        "fewer than before training against it.",
        (
            SizePanel("heads", HEAD_COUNTS, curves, "different heads of a layer", "x"),
            SizePanel("heads", HEAD_COUNTS, (bleu,), "BLEU", "x"),
        ),
    )


def check_cost(trained: Trainings) -> Checked:
    """Read off what each model has spent where it first reaches a quality, seed by seed."""
    curves = {
        model: [trained.systems[one.name].curve for one in COST if one.name.startswith(model)]
        for model in ("transformer", "recurrent")
    }
    titles = [one.title for one in LONG[:2]]
    every = [*itertools.chain(*curves.values())]
    top = min(max(point.bleu for point in curve) for curve in every)
    seen = max(curve[0].bleu for curve in every)  # before it nobody knows
    levels = tuple(sorted({level for part in _PARTS_OF_TOP if (level := int(top * part)) > seen}))
    if not levels:
        steps = tuple(point.step for point in curves["transformer"][0])
        first = [
            SizeCurve(title, tuple(point.bleu for point in each[0]))
            for title, each in zip(titles, curves.values(), strict=True)
        ]
        panel = SizePanel("steps", steps, tuple(first), "BLEU, validation", "none")
        doubt = f"No quality above that of a first validation, {seen:.1f} BLEU, is reached by all."
        return Checked(None, doubt, (panel,))
    panels, times = [], {}
    for kind, label in (("flops", "operations"), ("seconds", "seconds")):
        costs = {  # (seeds, levels)
            model: np.array([[_cost_of(curve, kind, level) for level in levels] for curve in each])
            for model, each in curves.items()
        }
        ratios = np.log(costs["recurrent"] / costs["transformer"])
        times[kind] = [Estimate.of(each) for each in ratios.T.tolist()]  # of each level
        drawn = tuple(
            SizeCurve(title, *_mean_costs(each))
            for title, each in zip(titles, costs.values(), strict=True)
        )
        panels.append(SizePanel("BLEU, validation", levels, drawn, label, "y"))
    weights = (trained.systems[f"{model}-1"].parameters for model in curves)
    said = [
        f"for {level} BLEU {_times(flops)} as many operations and {_times(seconds)} as long"
        for level, flops, seconds in zip(levels, *times.values(), strict=True)
    ]
    return Checked(
        decide(*(one.interval for each in times.values() for one in each)),
        f"The recurrent model takes {'; '.join(said)} as the Transformer, at the planned rates "
        f"({len(curves['transformer'])} seeds of each; "
        f"{' and '.join(f'{count:,}' for count in weights)} weights of the Transformer and the "
        f"recurrent model). {TUNED} {_published_costs()}",
        tuple(panels),
    )


def _mean_costs(costs: Float[np.ndarray, "seeds levels"]) -> tuple[tuple[float, ...], ...]:
    """Return the mean of all seeds at each level, and its margin."""
    estimates = [Estimate.of(each) for each in costs.T.tolist()]
    return tuple(one.value for one in estimates), tuple(one.margin for one in estimates)


def _times(logarithm: Estimate) -> str:
    """Say a ratio by the mean of its logarithm."""
    low, high = map(math.exp, logarithm.interval)
    return f"{math.exp(logarithm.value):.1f} times (95 % interval {low:.1f} to {high:.1f})"


def _published_costs() -> str:
    """Say what the paper prints."""
    rows = {one.name: one for one in PUBLISHED}
    theirs, ours = rows["GNMT + RL"], rows["Transformer (base)"]
    spent = [cost for cost in (theirs.printed[0], ours.printed[0]) if cost]
    return (
        f"The paper prints {spent[0]:.1e} operations for {theirs.bleu[0]} BLEU of GNMT + RL, and "
        f"{spent[1]:.1e} for {ours.bleu[0]} of its base model, English-German: "
        f"{spent[0] / spent[1]:.1f} times."
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


def _untrained(translator: Translator) -> Translator:
    """Build a model as its training began."""
    fresh = Translator(translator.run, translator.run.build().eval())
    initialise(fresh.models[0], translator.run.config.train.seed)
    return fresh


def sharpen(
    translator: Translator,
    wanted: Sequence[float],
    entropies: Callable[[Translator], Sequence[float]],
) -> None:
    """
    Multiply the queries of each layer by a factor, by which its attention has a wanted entropy.

    `wanted`, `entropies`: of the encoder's layers, then of the decoder's attention to the source.
    """
    layers = [one for one in translator.models[0].modules() if isinstance(one, EncoderLayer)]
    others = [one for one in translator.models[0].modules() if isinstance(one, DecoderLayer)]
    heads = [layer.self_attention for layer in layers] + [one.cross_attention for one in others]
    first = [one.qkv_proj.weight.detach().clone() for one in heads]
    low = np.zeros(len(heads))
    high = np.full(len(heads), math.log(_MOST_SHARPENED))  # of the factors' logarithms
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        for one, weight, logarithm in zip(heads, first, middle, strict=True):
            with torch.no_grad():
                one.qkv_proj.weight.copy_(weight)
                one.qkv_proj.weight[: one.widths[0]] *= math.exp(logarithm)
        is_blunt = np.asarray(entropies(translator)) > np.asarray(wanted)
        low, high = np.where(is_blunt, middle, low), np.where(is_blunt, high, middle)


def _entropies(trained: Trainings, translator: Translator) -> list[float]:
    """Compute the mean entropy of each layer's attention in some sentences, in bits."""
    found = [
        [float(entropy(layer).mean()) for layer in layers]
        for layers in itertools.islice(_attention(trained, translator), _FOR_ENTROPY)
    ]
    return [float(np.mean(each)) for each in zip(*found, strict=True)]


def _different_heads(trained: Trainings, translator: Translator) -> list[float]:
    """Count the different heads of a layer for every sentence, the mean over layers."""
    return [
        float(np.mean([different_heads(layer) for layer in layers]))
        for layers in _attention(trained, translator)
    ]


def _attention(trained: Trainings, translator: Translator) -> Iterator[list[np.ndarray]]:
    """Compute the weights of each layer (heads, queries, keys) in some sentences of the test."""
    corpus = trained.corpus
    pairs = zip(*(corpus.lines("test", one) for one in (corpus.source, corpus.target)), strict=True)
    for source, target in itertools.islice(pairs, _SENTENCES):
        attention = translator.attend(source, target)
        yield [*attention.encoder, *attention.cross]


def _named(
    systems: Sequence[TableSystem], values: Sequence[Sequence[float]]
) -> tuple[SizeCurve, ...]:
    return tuple(
        SizeCurve(one.title, tuple(each)) for one, each in zip(systems, values, strict=True)
    )


def _words(trained: Trainings) -> float:
    """Count the words of a translation, the mean of the test."""
    lines = trained.corpus.lines("test", trained.corpus.target)
    return float(np.mean([len(line.split()) for line in lines]))
