"""
Figures 3 to 5 of the paper, from any run.

Nobody else's model has the paper's heads at the paper's places. Where the paper shows two heads for
a behaviour, the two that show it most are chosen; the numbers say how much.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from jaxtyping import Float

from heedful.errors import SettingError
from heedful.paper.role_heads import rate_heads
from heedful.paper.sentences import EXAMPLES, LAYER, PaperExample
from heedful.paper.word_attention import WordAttention, word_attention
from heedful.translation.translator import Translator
from heedful.visualise.lines import Head, Panel, attention_lines
from heedful.visualise.report_page import ReportPage

_SHOWN_WORDS = 3


@dataclass(frozen=True)
class Figure:
    """A figure to draw, with its caption and numbers."""

    words: tuple[str, ...]
    """The sentence."""
    panels: tuple[Panel, ...]
    """What is drawn."""
    sheet: ReportPage
    """Title, caption and numbers."""
    notes: tuple[str, ...]
    """Differences from the paper's figure."""

    def draw(self, out: Path) -> None:
        """Draw the figure."""
        attention_lines(self.panels, self.words, out, self.sheet)


def make_figure(
    number: int,
    translator: Translator,
    *,
    sentence: str = "",
    layer: int = 0,
    heads: Sequence[int] = (),
    asks: str = "",
    answers: str = "",
) -> Figure:
    """
    Compute one of the figures.

    `layer`: which layer of the encoder, counted from 1; 0 for the fifth, or the last of fewer.
    `heads`: which heads of it, counted from 1; in figure 3 all, in the others the two that are
    found.

    Raises `SettingError` for a layer, head or word that is not there, and where the run does not
    read English and no other sentence is given.
    """
    paper = EXAMPLES[number]
    notes: list[str] = []
    text = sentence or _paper_text(translator, paper, number)
    looks = word_attention(translator, text)
    if looks.unknown:
        notes.append(
            f"{len(looks.unknown)} of {len(looks.words)} words have subwords that this run does "
            "not know, so its attention means little; give a --sentence of its own kind of "
            "text"
        )
    layer = _layer(layer, looks, notes)
    for head in heads:
        if not 1 <= head <= looks.heads:
            raise SettingError(
                f"--heads must be between 1 and {looks.heads} for this run, but {head} came."
            )
    given = bool(sentence)
    asking = _words(looks, asks, "" if given else paper.asks, "--asks", needed=number != 5)
    answering = _words(looks, answers, "" if given else paper.answers, "--answers", needed=False)
    look = looks.weights[layer - 1]
    title = f"layer {layer} of {looks.layers}"
    told = _sources(paper, number, given)
    panels: tuple[Panel, ...]
    if number == 3:
        chosen = list(heads) or list(range(1, looks.heads + 1))
        panels = (_panel(f"Encoder self-attention, {title}", look, chosen, asking),)
        sheet = _asked_sheet(number, told, looks, layer, chosen, asking, answering)
    elif number == 4:
        chosen = list(heads) or _sharpest(looks, layer, asking, answering)
        name = " ".join(looks.words[index] for index in asking)
        panels = (
            _panel(f"Head {chosen[0]}, {title}", look, chosen[:1], ()),
            _panel(f"From “{name}” alone, {title}", look, chosen, asking),
        )
        sheet = _asked_sheet(number, told, looks, layer, chosen, asking, answering)
    else:
        chosen = list(heads) or _structured(look)
        panels = tuple(
            _panel(f"Head {head}, {title}", look, [head], (), colour)
            for head, colour in zip(chosen, _green_and_red(len(chosen)), strict=True)
        )
        sheet = _structure_sheet(told, look, layer, chosen)
    return Figure(looks.words, panels, sheet, tuple(notes))


def _paper_text(translator: Translator, paper: PaperExample, number: int) -> str:
    """Return the paper's sentence, if it is in the run's source language."""
    language = translator.run.config.data.source_language
    if language and language.replace("-", "_").split("_")[0].lower() not in ("en", "eng"):
        raise SettingError(
            f"figure {number} of the paper shows an English sentence, but this run reads "
            f"{language!r}; give one that it can read with --sentence. The paper's is: {paper.text}"
        )
    tags = translator.tokenizer.tags
    return f"{tags[0]} {paper.text}" if tags else paper.text


def _layer(layer: int, looks: WordAttention, notes: list[str]) -> int:
    """Find the layer, and note a difference from the paper's."""
    if layer > looks.layers:
        raise SettingError(
            f"--layer must be between 1 and {looks.layers}, the layers of this run's encoder, but "
            f"is {layer}."
        )
    if layer:
        return layer
    if looks.layers < LAYER:
        notes.append(
            f"the paper shows layer {LAYER} of 6; this encoder has {looks.layers}, so its last is "
            "shown"
        )
    return min(LAYER, looks.layers)


def _words(
    looks: WordAttention, text: str, by_default: str, option: str, *, needed: bool
) -> tuple[int, ...]:
    """Find the given words, or the paper's."""
    if text or by_default:
        return looks.find(text or by_default, option)
    if needed:
        raise SettingError(
            f"with another sentence, {option} must name the word whose attention is shown: "
            f"{' '.join(looks.words)}."
        )
    return ()


def _panel(
    title: str,
    look: Float[np.ndarray, "heads words words"],
    heads: Sequence[int],
    asking: tuple[int, ...],
    colour: int | None = None,
) -> Panel:
    """Build a panel of some heads, each in its own colour."""
    shown = tuple(
        Head(f"head {head}", head - 1 if colour is None else colour, look[head - 1])
        for head in heads
    )
    return Panel(title, shown, asking or None)


def _green_and_red(count: int) -> list[int]:
    """Choose distinct colours, green and red first, as in figure 5."""
    return [(2, 7, 0, 4, 3, 6)[index % 6] for index in range(count)]


def _sharpest(
    looks: WordAttention, layer: int, asking: Sequence[int], answers: Sequence[int]
) -> list[int]:
    """
    Find the two heads with the most attention from some words to their answers, or anywhere else.

    Attention from other words is subtracted: a head that always attends to “Law” answers nothing.
    If no head is better by this, the larger weight decides.
    """
    last = len(looks.words) - looks.ended
    others = [index for index in range(last) if index not in asking]
    look = looks.weights[layer - 1 : layer]
    if answers or not others:
        rated = rate_heads(look, asking, answers or asking)
        rated.sort(key=lambda one: -round(one.weight - one.others, 2))
        return [one.head for one in rated[:2]]
    sharp = look[0][:, list(asking)][:, :, others].max(axis=-1).mean(axis=-1)
    return [int(head) + 1 for head in np.argsort(-sharp, kind="stable")[:2]]


def structure(
    look: Float[np.ndarray, "heads words words"],
) -> Float[np.ndarray, "heads 4"]:
    """
    Measure attention patterns that are neither a fixed distance nor the same for all words.

    Returns: sharpness (1 if each word attends to one word, 0 if all weights are equal), the largest
    mean weight at one distance, the overlap of all words' attention (1 if all are the same), and
    structure: sharpness x (1 - the larger of the two).

    The paper chose its heads by eye. A head that always attends to the previous word, or to the
    full stop, is sharp but does not depend on the sentence. The overlap of two distributions is the
    weight that both put on the same words; here each is compared with the mean of all.
    """
    count = look.shape[-1]
    logarithms = np.log(np.where(look > 0, look, 1.0))
    entropy = -(look * logarithms).sum(axis=-1).mean(axis=-1)
    sharp = 1 - entropy / math.log(count) if count > 1 else np.ones(len(look))
    by_distance = [
        np.trace(look, offset, axis1=-2, axis2=-1) / count for offset in range(1 - count, count)
    ]
    distance = np.max(by_distance, axis=0)
    common = np.minimum(look, look.mean(axis=-2, keepdims=True)).sum(axis=-1).mean(axis=-1)
    return np.stack([sharp, distance, common, sharp * (1 - np.maximum(distance, common))], axis=-1)


def _structured(look: Float[np.ndarray, "heads words words"]) -> list[int]:
    """Find two heads with structured and different patterns."""
    if len(look) == 1:
        return [1]
    value = structure(look)[:, 3]

    def worth(pair: tuple[int, int]) -> float:
        one, other = pair
        apart = float(np.abs(look[one] - look[other]).sum(axis=-1).mean()) / 2
        return float(value[one] + value[other]) * apart

    best = max(combinations(range(len(look)), 2), key=worth)
    return [head + 1 for head in best]


def _sources(paper: PaperExample, number: int, given: bool) -> str:
    """Describe what the paper's figure shows, and of which sentence."""
    sentence = "" if given else " The sentence is the paper's."
    return f"After figure {number} of the paper: {paper.about}{sentence}"


def _asked_sheet(
    number: int,
    told: str,
    looks: WordAttention,
    layer: int,
    heads: Sequence[int],
    asking: Sequence[int],
    answers: Sequence[int],
) -> ReportPage:
    """Describe where each head attends from the query words."""
    name = " ".join(looks.words[index] for index in asking)
    answer = " ".join(looks.words[index] for index in answers)
    known = [f"on “{answer}”", "from the others"] if answer else []
    header = ["head", *known, f"“{name}” attends most to"]
    rated = {
        one.head: one
        for one in rate_heads(looks.weights[layer - 1 : layer], asking, answers or asking)
    }
    rows = []
    for head in heads:
        look = looks.weights[layer - 1, head - 1, list(asking)].mean(axis=0)
        most = np.argsort(-look, kind="stable")[:_SHOWN_WORDS].tolist()
        seen = ", ".join(f"{looks.words[index]} {look[index]:.2f}" for index in most)
        one = rated[head]
        on_answer = [f"{one.weight:.2f}", f"{one.others:.2f}"] if answer else []
        rows.append((f"head {head}", *on_answer, seen))
    even = f" With equal weights for all words it would be {len(answers) / len(looks.words):.2f}."
    return ReportPage(
        f"Figure {number}: from “{name}”, layer {layer} of {looks.layers}",
        told + (even if answer else ""),
        tuple(header),
        tuple(rows),
    )


def _structure_sheet(
    told: str, look: Float[np.ndarray, "heads words words"], layer: int, heads: Sequence[int]
) -> ReportPage:
    """Describe how sharp each head of the layer is, and how much of it is distance or position."""
    names = ("head", "drawn", "sharpness", "at one distance", "in common", "structure")
    rows = tuple(
        (f"head {head}", "yes" if head in heads else "", *(f"{value:.2f}" for value in values))
        for head, values in enumerate(structure(look).tolist(), start=1)
    )
    about = (
        " Sharpness is 1 if each word attends to one word and 0 if all weights "
        "are equal; structure "
        "is the part of it that is neither one distance nor the same for all words. Two heads are "
        "drawn that have much structure and differ from each other."
    )
    return ReportPage(f"Figure 5: two heads of layer {layer}", told + about, names, rows)
