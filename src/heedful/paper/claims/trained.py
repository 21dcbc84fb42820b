"""Measurements of the small models that are trained for claims."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from heedful.experiments.estimate import Estimate
from heedful.experiments.measured import CurvePoint, MeasuredSystem
from heedful.experiments.page import LEARNED, ScoreDifference, capital
from heedful.experiments.report import last_rise, still_learns
from heedful.model.initialize import initialize
from heedful.model.layers import DecoderLayer, EncoderLayer
from heedful.paper.claims.divergence import different_heads, entropy
from heedful.paper.claims.models import COST, HEAD_COUNTS, HEADS, LONG, MASK
from heedful.paper.claims.statement import Measured, every, mean_curve, say_times, sign
from heedful.paper.claims.trainings import Trainings
from heedful.paper.table2 import PUBLISHED
from heedful.translation.translator import Translator
from heedful.visualise.size_curves import SizeCurve, SizePanel, Steps

Pair = tuple[str, str]
"""Names of two models."""
_SENTENCES, _FOR_ENTROPY = 50, 20
_HEADS_OF = ("trained", "untrained", "untrained and sharpened")
_MOST_SHARPENED, _HALVINGS = 1000.0, 16
_PARTS_OF_TOP = (0.25, 0.5, 0.75, 0.9, 0.98)
"""Fractions of the highest BLEU that all models reach; costs are compared at each fraction."""
_AS_LOW = 1.1
"""Two perplexities count as equal within this factor."""


def measure_mask(trained: Trainings) -> Measured:
    """Measure a decoder that sees the tokens that it must predict."""
    with_mask, without_mask = (system.name for system in MASK)
    masked, unmasked = trained.systems[with_mask], trained.systems[without_mask]
    steps = tuple(point.step for point in masked.curve)
    curves = {
        field: tuple(
            SizeCurve(
                model.title,
                tuple(getattr(point, field) for point in trained.systems[model.name].curve),
            )
            for model in MASK
        )
        for field in ("perplexity", "bleu")
    }
    ratio = unmasked.curve[-1].perplexity / masked.curve[-1].perplexity
    low, high = unmasked.interval
    number = f"translations have {unmasked.bleu:.1f} BLEU ({low:.1f} to {high:.1f})"
    if ratio >= _AS_LOW:
        number = (
            f"the perplexity on reference translations is {ratio:.2f} times as high as with a mask"
        )
    apart = trained.difference(with_mask, without_mask)
    return Measured(
        [unmasked.bleu < LEARNED if ratio < _AS_LOW else None],
        [f"Without a mask, {number}."],
        f"Without a mask, the model has perplexity {unmasked.curve[-1].perplexity:.2f} on "
        f"reference translations (with a mask, {masked.curve[-1].perplexity:.2f}). Its own "
        f"translations have {unmasked.bleu:.1f} BLEU. BLEU with a mask minus BLEU "
        f"without a mask: {apart.difference:+.1f} ({say_interval(apart.interval)}).",
        (
            SizePanel("steps", steps, curves["perplexity"], "perplexity of references"),
            SizePanel("steps", steps, curves["bleu"], "validation BLEU", "x"),
        ),
    )


class Grid(NamedTuple):
    """Models of several kinds and sizes, plotted against size; their names are KIND-SIZE."""

    axis: str
    sizes: tuple[int, ...]
    kinds: Mapping[str, str]
    """The kind of each curve, by the title of the curve."""
    values: Mapping[str, tuple[str, Steps]]
    """For each plotted field of `MeasuredSystem`: a label, and which axes are logarithmic."""

    def panels(self, trained: Trainings) -> tuple[SizePanel, ...]:
        """Build a panel for each value, with the curves of all kinds."""
        return tuple(
            SizePanel(
                self.axis,
                self.sizes,
                tuple(
                    SizeCurve(
                        title,
                        tuple(
                            getattr(trained.systems[f"{kind}-{size}"], field) for size in self.sizes
                        ),
                    )
                    for title, kind in self.kinds.items()
                ),
                label,
                steps,
            )
            for field, (label, steps) in self.values.items()
        )


def compare_pairs(
    trained: Trainings,
    *,
    pairs: Sequence[Pair],
    decide_by: Callable[[Trainings, Sequence[Pair]], Measured],
    deciding: Sequence[Pair] = (),
    grid: Grid | None = None,
    more: Callable[[Trainings], str] = lambda _: "",
) -> Measured:
    """
    Compare the BLEU of pairs of models.

    `decide_by`: decides by the differences of the `deciding` pairs, or of all pairs if `deciding`
    is empty. Nothing is decided if a model of these pairs has learned nothing or is still learning.
    `more`: returns an additional sentence.
    """
    compared = " ".join(compare_bleu(trained, *pair) for pair in pairs)
    names = [*dict.fromkeys(name for pair in deciding or pairs for name in pair)]
    rising, weak = still_rising(trained, names), useless(trained, names)
    if weak:
        decided = Measured([None], [capital(f"{_list(weak[:1])}.")], "", ())
    else:
        decided = decide_by(trained, deciding or pairs)
    if rising:
        decided = decided._replace(evidence=[None], headlines=[_say_rising(rising[:1])])
    panels = (_by_length(trained),) if grid is None else grid.panels(trained)
    weights = sorted({system.parameters for system in trained.systems.values()})
    sizes = f"Weights: {weights[0]:,} to {weights[-1]:,}." if len(weights) > 1 else ""
    parts = (compared, decided.sentence, more(trained), sizes, _say_rising(rising))
    return decided._replace(sentence=" ".join(filter(None, parts)), panels=panels)


def by_pairs(trained: Trainings, pairs: Sequence[Pair]) -> Measured:
    """Decide by the BLEU difference within every pair."""
    differences = [trained.difference(*pair) for pair in pairs]
    evidence = [sign(apart.interval) for apart in differences]
    return Measured(evidence, [*map(_headline, differences)], "", ())


def by_longest_sentences(trained: Trainings, pairs: Sequence[Pair]) -> Measured:
    """Decide by the difference on the longest sentences, and by its growth (`Trainings.growth`)."""
    (pair,) = pairs
    longest, growth = trained.difference(*pair, longest=True), trained.growth(*pair)
    grown = "All lines are equally long." if growth is None else say_growth(growth)
    sentence = (
        "In the quarter with the longest sentences, the difference is "
        f"{longest.difference:+.1f} ({say_interval(longest.interval)}). {grown}"
    )
    evidence = [sign(longest.interval), None if growth is None else sign(growth.interval)]
    headlines = [_headline(longest, " in the longest quarter of the sentences"), grown]
    return Measured(evidence, headlines, sentence, ())


def by_lead(trained: Trainings, pairs: Sequence[Pair], *, lead: str) -> Measured:
    """Decide by the first pair's difference, and by how much it exceeds the second pair's."""
    apart = trained.difference(*pairs[0])
    grown, interval = trained.growth_between(*pairs)
    sentence = f"{lead} changes by {grown:+.1f} BLEU ({say_interval(interval)})."
    evidence = [sign(apart.interval), sign(interval)]
    return Measured(evidence, [_headline(apart), sentence], sentence, ())


def words_of_a_translation(trained: Trainings) -> str:
    """State the mean length of the translations in the test set."""
    lines = trained.corpus.lines("test", trained.corpus.target)
    words = np.mean([len(line.split()) for line in lines])
    return f"Translations in the test set have {words:.1f} words on average."


def _by_length(trained: Trainings) -> SizePanel:
    """Lay out BLEU by the length of the source."""
    curves = tuple(
        SizeCurve(system.title, trained.bleu_by_length(name))
        for name, system in trained.systems.items()
    )
    return SizePanel(
        "words of the longest source in each quarter", tuple(trained.parts), curves, "BLEU", "none"
    )


def compare_bleu(trained: Trainings, ours: str, theirs: str) -> str:
    """State the BLEU difference between two models, or that a model has learned nothing."""
    if weak := useless(trained, (ours, theirs)):
        return capital(f"{_titles(trained, (ours, theirs))} are not compared: {_list(weak)}.")
    apart = trained.difference(ours, theirs)
    return f"{_say_pair(apart)}: {apart.difference:+.1f} BLEU ({say_interval(apart.interval)})."


def _headline(apart: ScoreDifference, where: str = "") -> str:
    """State a difference as a headline. `where`: the sentences on which it was measured."""
    low, high = apart.interval
    return f"{_say_pair(apart)}{where}: {apart.difference:+.1f} BLEU ({low:.1f} to {high:.1f})."


def _say_pair(apart: ScoreDifference) -> str:
    return capital(f"{_with_brackets(apart.better)} minus {_with_brackets(apart.worse)}")


def _with_brackets(title: str) -> str:
    """Put the detail of a title in parentheses, such as “32 tokens” in “layer norm, 32 tokens”."""
    name, comma, detail = title.partition(", ")
    return f"{name} ({detail})" if comma else name


def useless(trained: Trainings, names: Sequence[str]) -> list[MeasuredSystem]:
    """Find the models that have learned nothing useful."""
    return [trained.systems[name] for name in names if trained.systems[name].bleu < LEARNED]


def still_rising(trained: Trainings, names: Sequence[str]) -> list[str]:
    """List the models that are still learning, the fastest first, with the rise of their BLEU."""
    systems = [trained.systems[name] for name in names]
    rises = [(last_rise([system]), system.title) for system in systems if still_learns([system])]
    return [f"{title} (by {rise:.1f})" for rise, title in sorted(rises, reverse=True)]


def _say_rising(rising: Sequence[str]) -> str:
    """State that more training would change the differences, if models are still learning."""
    reason = "validation BLEU still rose in the last quarter of the training"
    models = "; ".join(rising)
    return f"More steps would change the differences, because {reason}: {models}." if models else ""


def say_growth(growth: ScoreDifference) -> str:
    """State how much larger the difference between two models is on the longest sentences."""
    return (
        f"{_say_pair(growth)}: the difference in the longest quarter minus the difference in the "
        f"other sentences is {growth.difference:+.1f} BLEU ({say_interval(growth.interval)})."
    )


def say_interval(interval: tuple[float, float]) -> str:
    """Format a 95% interval of differences."""
    return f"95% interval {interval[0]:+.1f} to {interval[1]:+.1f}"


def _titles(trained: Trainings, names: Sequence[str]) -> str:
    return " and ".join(trained.systems[name].title for name in names)


def _list(weak: Sequence[MeasuredSystem]) -> str:
    """State that models have learned nothing."""
    titles = ", ".join(f"{system.title} ({system.bleu:.1f} BLEU)" for system in weak)
    return f"{titles} {'have' if len(weak) > 1 else 'has'} learned nothing useful"


def measure_heads(trained: Trainings) -> Measured:
    """Count different heads in trained layers, untrained layers, and sharpened untrained layers."""
    by_kind: dict[str, list[list[float]]] = {name: [] for name in _HEADS_OF}
    for system in HEADS:
        translator = trained.translator(system.name)
        fresh, sharp = (_untrained_model(translator) for _ in range(2))
        sharpen(sharp, _entropies(trained, translator), partial(_entropies, trained))
        for name, model in zip(_HEADS_OF, (translator, fresh, sharp), strict=True):
            by_kind[name].append(_different_heads(trained, model))
    after, before, as_sharp = by_kind.values()
    gains = [
        [Estimate.of(np.subtract(*pair)) for pair in zip(after, theirs, strict=True)]
        for theirs in (before, as_sharp)
    ]
    milder, stricter = (_deciding_gain(by_count) for by_count in gains)
    means = {name: tuple(float(np.mean(row)) for row in rows) for name, rows in by_kind.items()}
    curves = tuple(SizeCurve(name, values) for name, values in means.items())
    bleu = SizeCurve("trained", tuple(trained.systems[system.name].bleu for system in HEADS))
    counted = {
        name: _list_numbers([f"{mean:.2f}" for mean in values]) for name, values in means.items()
    }
    is_more = sign(stricter[0].interval) or None  # a smaller number does not refute the claim
    doubt = (
        ""
        if is_more
        else " The claim would be refuted only by fewer different heads than in the untrained "
        "model without sharpening."
    )
    return Measured(
        [is_more, sign(milder[0].interval)],
        [
            f"{_say_gain(*stricter, _HEADS_OF[2])}{doubt}",
            _say_gain(*milder, _HEADS_OF[1]),
        ],
        f"Of {_list_numbers(HEAD_COUNTS)} heads of a layer, {counted['trained']} are different "
        f"after training, and {counted['untrained']} before training. The number of different "
        "heads is two to the power of the heads' Jensen-Shannon divergence. It is averaged over "
        f"{len(after[0])} sentences, the encoder's self-attention and the decoder's attention to "
        f"the source. Sharpness alone makes heads differ: {counted['untrained and sharpened']} "
        "are different in an untrained model whose queries are multiplied until each layer's "
        "attention is as sharp as after training. Its heads attend to random positions, so heads "
        "can hardly differ more. The claim is supported if the number of different heads is "
        "larger in a trained model than in this untrained model. It is refuted if training "
        "reduces this number.",
        (
            SizePanel("heads", HEAD_COUNTS, curves, "different heads of a layer", "x"),
            SizePanel("heads", HEAD_COUNTS, (bleu,), "BLEU", "x"),
        ),
    )


def _list_numbers(numbers: Sequence[object]) -> str:
    """Write numbers with commas, and “and” before the last number."""
    *others, last = map(str, numbers)
    return f"{', '.join(others)} and {last}"


def _deciding_gain(gains: Sequence[Estimate]) -> tuple[Estimate, int]:
    """Find the gain that decides whether all gains are above 0, and its number of heads."""
    ranked = sorted(zip(gains, HEAD_COUNTS, strict=True), key=lambda pair: pair[0].interval)
    return ranked[every([sign(gain.interval) for gain, _ in ranked])]


def _say_gain(gain: Estimate, count: int, untrained: str) -> str:
    """State a gain in different heads over an untrained model."""
    low, high = gain.interval
    return (
        f"Trained minus {untrained} ({count} heads): {gain.value:+.2f} different heads "
        f"({low:.2f} to {high:.2f})."
    )


def measure_cost(trained: Trainings) -> Measured:
    """Compare the costs at which both models first reach the same BLEU, for each seed."""
    curves = {
        model: [trained.systems[run.name].curve for run in COST if run.name.startswith(model)]
        for model in ("transformer", "recurrent")
    }
    titles = [run.title for run in LONG[:2]]
    all_curves = [*itertools.chain(*curves.values())]
    top = min(max(point.bleu for point in curve) for curve in all_curves)
    seen = max(curve[0].bleu for curve in all_curves)  # the cost of a lower BLEU is unknown
    levels = tuple(sorted({level for part in _PARTS_OF_TOP if (level := int(top * part)) > seen}))
    if not levels:
        steps = tuple(point.step for point in curves["transformer"][0])
        first = [
            SizeCurve(title, tuple(point.bleu for point in runs[0]))
            for title, runs in zip(titles, curves.values(), strict=True)
        ]
        panel = SizePanel("steps", steps, tuple(first), "validation BLEU", "none")
        doubt = (
            "The costs cannot be compared: the highest BLEU that all models reach is not far "
            f"enough above {seen:.1f}, the highest BLEU of a first validation."
        )
        return Measured([None], [doubt], doubt, (panel,))
    panels, times = [], {}
    for kind, label in (("flops", "operations"), ("seconds", "seconds")):
        costs = {  # (seeds, levels)
            model: np.array([[_cost_of(curve, kind, level) for level in levels] for curve in runs])
            for model, runs in curves.items()
        }
        ratios = np.log(costs["recurrent"] / costs["transformer"])
        times[kind] = [Estimate.of(values) for values in ratios.T.tolist()]  # one for each level
        drawn = tuple(
            mean_curve(title, by_seed.T.tolist())
            for title, by_seed in zip(titles, costs.values(), strict=True)
        )
        panels.append(SizePanel("validation BLEU", levels, drawn, label, "y"))
    weights = (trained.systems[f"{model}-1"].parameters for model in curves)
    comparisons = [
        f"for {level} BLEU, {say_times(flops, 'the operations')} and "
        f"{say_times(seconds, 'the seconds')}"
        for level, flops, seconds in zip(levels, *times.values(), strict=True)
    ]
    return Measured(
        [sign(ratio.interval) for ratios in times.values() for ratio in ratios],
        [
            f"For {level} BLEU, the recurrent model takes "
            f"{say_times(ratio, f'the {panel.label} of the Transformer')}."
            for panel, ratios in zip(panels, times.values(), strict=True)
            for level, ratio in zip(levels, ratios, strict=True)
        ],
        "The recurrent model takes the following multiples of the Transformer's cost, with 95% "
        f"intervals: {'; '.join(comparisons)}. Seconds are computed from speeds that were "
        f"measured before the training runs. There are {len(curves['transformer'])} seeds of each "
        f"model. The Transformer has {next(weights):,} weights, and the recurrent model has "
        f"{next(weights):,}. {_published_costs()}",
        tuple(panels),
    )


def _published_costs() -> str:
    """State the costs that the paper prints."""
    rows = {row.name: row for row in PUBLISHED}
    theirs, ours = rows["GNMT + RL"], rows["Transformer (base)"]
    spent = [cost for cost in (theirs.printed[0], ours.printed[0]) if cost]
    return (
        f"For English-German, the paper prints {spent[0]:.1e} operations for GNMT + RL "
        f"({theirs.bleu[0]} BLEU) and {spent[1]:.1e} for its base model ({ours.bleu[0]} BLEU), a "
        f"ratio of {spent[0] / spent[1]:.1f}."
    )


def _cost_of(curve: Sequence[CurvePoint], kind: str, level: int) -> float:
    """Find the cost at which BLEU first reached a level, interpolated between validations."""
    spent, bleu = 0.0, 0.0
    for point in curve:
        cost = float(getattr(point, kind))
        if point.bleu >= level:
            return spent + (cost - spent) * (level - bleu) / (point.bleu - bleu)
        spent, bleu = cost, point.bleu
    raise AssertionError(f"{level} is never reached")


def _untrained_model(translator: Translator) -> Translator:
    """Rebuild a trained model with the weights from the beginning of its training."""
    fresh = Translator(translator.run, translator.run.build().eval())
    initialize(fresh.models[0], translator.run.config.train.seed)
    return fresh


def sharpen(
    translator: Translator,
    wanted: Sequence[float],
    entropies: Callable[[Translator], Sequence[float]],
) -> None:
    """
    Multiply the queries of each layer by the factor that gives its attention a required entropy.

    `wanted`: the required entropies in bits. `entropies`: computes the entropies of a model. Both
    list the encoder's layers, then the decoder's attention to the source.
    """
    encoder = [layer for layer in translator.models[0].modules() if isinstance(layer, EncoderLayer)]
    decoder = [layer for layer in translator.models[0].modules() if isinstance(layer, DecoderLayer)]
    attn = [layer.self_attention for layer in encoder] + [
        layer.cross_attention for layer in decoder
    ]
    first = [attention.qkv_proj.weight.detach().clone() for attention in attn]
    low = np.zeros(len(attn))
    high = np.full(len(attn), math.log(_MOST_SHARPENED))  # of the factors' logarithms
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        for attention, weight, logarithm in zip(attn, first, middle, strict=True):
            with torch.no_grad():
                attention.qkv_proj.weight.copy_(weight)
                attention.qkv_proj.weight[: attention.widths[0]] *= math.exp(logarithm)
        is_blunt = np.asarray(entropies(translator)) > np.asarray(wanted)
        low, high = np.where(is_blunt, middle, low), np.where(is_blunt, high, middle)


def _entropies(trained: Trainings, translator: Translator) -> list[float]:
    """Compute the mean entropy of each layer's attention over some sentences, in bits."""
    by_sentence = [
        [float(entropy(layer).mean()) for layer in layers]
        for layers in itertools.islice(_attention(trained, translator), _FOR_ENTROPY)
    ]
    return [float(np.mean(values)) for values in zip(*by_sentence, strict=True)]


def _different_heads(trained: Trainings, translator: Translator) -> list[float]:
    """Count the different heads of a layer for every sentence, averaged over layers."""
    return [
        float(np.mean([different_heads(layer) for layer in layers]))
        for layers in _attention(trained, translator)
    ]


def _attention(trained: Trainings, translator: Translator) -> Iterator[list[np.ndarray]]:
    """Compute each layer's attention weights (heads, queries, keys) in some test sentences."""
    corpus = trained.corpus
    pairs = zip(*(corpus.lines("test", end) for end in (corpus.source, corpus.target)), strict=True)
    for source, target in itertools.islice(pairs, _SENTENCES):
        attention = translator.attend(source, target)
        yield [*attention.encoder, *attention.cross]
