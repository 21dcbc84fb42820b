"""
Figures 3 to 5 of the paper, from any run.

Other models do not have the paper's heads in the same layers. If the paper shows two heads for a
behavior, the two heads that show it most are chosen; the numbers state how strongly.
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
from heedful.paper.sentences import EXAMPLES, LAYER, PaperExample, own_sentence
from heedful.paper.word_attention import WordAttention, word_attention
from heedful.runs.run import Run
from heedful.translation.translator import Translator
from heedful.visualise.lines import Head, Panel, attention_lines
from heedful.visualise.report_page import ReportPage

_SHOWN_WORDS = 3


@dataclass(frozen=True)
class Figure:
    """A figure to draw, with its caption and numbers."""

    run: str
    """Name of the run."""
    words: tuple[str, ...]
    """The sentence."""
    panels: tuple[Panel, ...]
    """The panels to draw."""
    sheet: ReportPage
    """Title, caption and numbers."""
    notes: tuple[str, ...]
    """Sentences about differences from the paper's figure."""

    def draw(self, out: Path) -> None:
        """Draw the figure."""
        attention_lines(self.panels, self.words, self.run, out, self.sheet)


def make_figure(
    number: int,
    translator: Translator,
    *,
    sentence: str = "",
    layer: int = 0,
    heads: Sequence[int] = (),
    query: str = "",
    keys: str = "",
) -> Figure:
    """
    Compute one of the figures.

    `layer`: layer of the encoder, counted from 1; 0 for the fifth layer, or the last layer if there
    are fewer. `heads`: heads of this layer, counted from 1; by default all heads in figure 3, and
    the two chosen heads in figures 4 and 5.

    By default the sentence is the paper's. If the run reads another language or does not know all
    of the paper's words, the default is a sentence of the run's training text. With `query`, the
    sentence is never from the training text.

    Raises `SettingError` for a missing layer, head or word. It is also raised if no sentence is
    given, the run does not read English, and no sentence of its training text can be shown.
    """
    paper = EXAMPLES[number]
    notes: list[str] = []
    text = sentence or _paper_text(translator, paper)
    attention = word_attention(translator, text) if text else None
    is_unknown = attention is None or bool(attention.unknown)
    if is_unknown and not (sentence or query) and (own := own_sentence(translator.run)):
        reason = (
            "the paper's sentence is English, and this run reads another language"
            if attention is None
            else "this run does not know all words of the paper's sentence"
        )
        notes.append(
            f"{reason}, so a sentence of its training text is shown; choose another with --sentence"
        )
        sentence, attention = own, word_attention(translator, own)
    if attention is None:
        raise SettingError(
            f"figure {number} of the paper shows an English sentence, but this run reads "
            f"{translator.run.config.data.source_language!r}; use --sentence to give a sentence in "
            f"that language. The paper's sentence is: {paper.text}"
        )
    if attention.unknown:
        notes.append(
            f"{len(attention.unknown)} of {len(attention.words)} words have subwords that this "
            "run does not know, so the attention weights mean little; give a --sentence that "
            "resembles the run's training text"
        )
    layer = _layer(layer, attention, notes)
    for head in heads:
        if not 1 <= head <= attention.heads:
            raise SettingError(
                f"--heads must be between 1 and {attention.heads} for this run, but got {head}."
            )
    has_sentence = bool(sentence)
    weights = attention.weights[layer - 1]
    query_words = _words(attention, query, "" if has_sentence else paper.query, "--query")
    if not query_words and number != 5:
        query_words = (farthest_seeing(weights, len(attention.words) - attention.ended),)
    key_words = _words(attention, keys, "" if has_sentence else paper.keys, "--keys")
    title = f"layer {layer} of {attention.layers}"
    source = _sources(paper, number, has_sentence)
    panels: tuple[Panel, ...]
    if number == 3:
        chosen = list(heads) or list(range(1, attention.heads + 1))
        panels = (_panel(f"Encoder self-attention, {title}", weights, chosen, query_words),)
        sheet = _query_sheet(number, source, attention, layer, chosen, query_words, key_words)
    elif number == 4:
        chosen = list(heads) or _sharpest(attention, layer, query_words, key_words)
        name = " ".join(attention.words[index] for index in query_words)
        panels = (
            _panel(f"Head {chosen[0]}, {title}", weights, chosen[:1], ()),
            _panel(f"From “{name}” alone, {title}", weights, chosen, query_words),
        )
        sheet = _query_sheet(number, source, attention, layer, chosen, query_words, key_words)
    else:
        chosen = list(heads) or _structured_heads(weights)
        panels = tuple(_panel(f"Head {head}, {title}", weights, [head], ()) for head in chosen)
        sheet = _structure_sheet(source, weights, layer, chosen)
    return Figure(run_name(translator.run), attention.words, panels, sheet, tuple(notes))


def run_name(run: Run) -> str:
    """Name a run by the last two parts of its path, because the last part is often “run”."""
    return "/".join(run.folder.path.parts[-2:])


def _paper_text(translator: Translator, paper: PaperExample) -> str:
    """Return the paper's sentence; an empty string if the run reads another language."""
    language = translator.run.config.data.source_language
    if language and language.replace("-", "_").split("_")[0].lower() not in ("en", "eng"):
        return ""
    tags = translator.tokenizer.tags
    return f"{tags[0]} {paper.text}" if tags else paper.text


def farthest_seeing(weights: Float[np.ndarray, "heads words words"], count: int) -> int:
    """Find the word, among the first `count`, that attends most to a non-adjacent word."""
    places = np.arange(count)
    apart = np.abs(places[:, None] - places) > 1
    seen = np.where(apart, weights[:, :count, :count], 0.0).max(axis=-1).mean(axis=0)
    return int(seen.argmax())


def _layer(layer: int, attention: WordAttention, notes: list[str]) -> int:
    """Return the layer to show, and add a note if it differs from the paper's layer."""
    if layer > attention.layers:
        raise SettingError(
            f"--layer must be between 1 and {attention.layers}, the number of layers of this "
            f"run's encoder, but is {layer}."
        )
    if layer:
        return layer
    if attention.layers < LAYER:
        notes.append(
            f"the paper shows layer {LAYER} of 6; this encoder has {attention.layers}, so its last "
            "layer is shown"
        )
    return min(LAYER, attention.layers)


def _words(attention: WordAttention, text: str, by_default: str, option: str) -> tuple[int, ...]:
    """Find the given words, or else the paper's words."""
    named = text or by_default
    return attention.find(named, option) if named else ()


def _panel(
    title: str,
    weights: Float[np.ndarray, "heads words words"],
    heads: Sequence[int],
    query_words: tuple[int, ...],
) -> Panel:
    """Build a panel that shows some heads."""
    return Panel(title, tuple(Head(head, weights[head - 1]) for head in heads), query_words or None)


def _sharpest(
    attention: WordAttention, layer: int, query_words: Sequence[int], key_words: Sequence[int]
) -> list[int]:
    """
    Find the two heads that attend most from the query words to the key words.

    Attention from other words to the key words is subtracted, because a head that always attends to
    “Law” answers no question. If two differences are equal to two decimals, the larger weight
    decides. Without key words, the largest weight on any word except the query words counts.
    """
    last = len(attention.words) - attention.ended
    others = [index for index in range(last) if index not in query_words]
    weights = attention.weights[layer - 1 : layer]
    if key_words or not others:
        rated = rate_heads(weights, query_words, key_words or query_words)
        rated.sort(key=lambda rating: -round(rating.weight - rating.others, 2))
        return [rating.head for rating in rated[:2]]
    sharp = weights[0][:, list(query_words)][:, :, others].max(axis=-1).mean(axis=-1)
    return [int(head) + 1 for head in np.argsort(-sharp, kind="stable")[:2]]


def structure(
    weights: Float[np.ndarray, "heads words words"],
) -> Float[np.ndarray, "heads 4"]:
    """
    Measure how much attention depends on the words, not only on a fixed distance or position.

    Returns four numbers for each head: sharpness, distance weight, overlap and structure. Sharpness
    is 1 if each word attends to one word, and 0 if all weights are equal. The distance weight is
    the largest mean weight at one distance. Overlap is 1 if all words have the same attention.
    Structure is sharpness x (1 - the larger of distance weight and overlap).

    The paper chose its heads by eye. A head that always attends to the previous word, or to the
    period, is sharp but does not depend on the sentence. The overlap of two distributions is the
    weight that both give to the same words; here each word's attention is compared with the mean.
    """
    count = weights.shape[-1]
    logarithms = np.log(np.where(weights > 0, weights, 1.0))
    entropy = -(weights * logarithms).sum(axis=-1).mean(axis=-1)
    sharp = 1 - entropy / math.log(count) if count > 1 else np.ones(len(weights))
    by_distance = [
        np.trace(weights, offset, axis1=-2, axis2=-1) / count for offset in range(1 - count, count)
    ]
    distance = np.max(by_distance, axis=0)
    common = np.minimum(weights, weights.mean(axis=-2, keepdims=True)).sum(axis=-1).mean(axis=-1)
    return np.stack([sharp, distance, common, sharp * (1 - np.maximum(distance, common))], axis=-1)


def _structured_heads(weights: Float[np.ndarray, "heads words words"]) -> list[int]:
    """Find two heads whose patterns are structured and differ from each other."""
    if len(weights) == 1:
        return [1]
    value = structure(weights)[:, 3]

    def worth(pair: tuple[int, int]) -> float:
        first, second = pair
        apart = float(np.abs(weights[first] - weights[second]).sum(axis=-1).mean()) / 2
        return float(value[first] + value[second]) * apart

    best = max(combinations(range(len(weights)), 2), key=worth)
    return [head + 1 for head in best]


def _sources(paper: PaperExample, number: int, has_sentence: bool) -> str:
    """Describe what the paper's figure shows, and for which sentence."""
    sentence = "" if has_sentence else " The sentence is the paper's."
    return f"Modeled on figure {number} of the paper: {paper.about}{sentence}"


def _query_sheet(
    number: int,
    source: str,
    attention: WordAttention,
    layer: int,
    heads: Sequence[int],
    query_words: Sequence[int],
    key_words: Sequence[int],
) -> ReportPage:
    """Describe to which words each head attends from the query words."""
    name = " ".join(attention.words[index] for index in query_words)
    answer = " ".join(attention.words[index] for index in key_words)
    known = [f"on “{answer}”", "from the others"] if answer else []
    rated = {
        rating.head: rating
        for rating in rate_heads(
            attention.weights[layer - 1 : layer], query_words, key_words or query_words
        )
    }
    rows: list[tuple[str, ...]] = [("head", *known, f"“{name}” attends most to")]
    for head in heads:
        weights = attention.weights[layer - 1, head - 1, list(query_words)].mean(axis=0)
        most = np.argsort(-weights, kind="stable")[:_SHOWN_WORDS].tolist()
        seen = ", ".join(f"{attention.words[index]} {weights[index]:.2f}" for index in most)
        rating = rated[head]
        on_answer = [f"{rating.weight:.2f}", f"{rating.others:.2f}"] if answer else []
        rows.append((f"head {head}", *on_answer, seen))
    even = len(key_words) / len(attention.words)
    return ReportPage(
        f"Figure {number}: from “{name}”, layer {layer} of {attention.layers}",
        source + (f" Equal weights for all words would give {even:.2f}." if answer else ""),
        rows,
    )


def _structure_sheet(
    source: str, weights: Float[np.ndarray, "heads words words"], layer: int, heads: Sequence[int]
) -> ReportPage:
    """Describe the sharpness of each head, and how much of it distance or position explains."""
    names = ("head", "drawn", "sharpness", "at one distance", "in common", "structure")
    rows = [
        (f"head {head}", "yes" if head in heads else "", *(f"{value:.2f}" for value in values))
        for head, values in enumerate(structure(weights).tolist(), start=1)
    ]
    about = (
        " Sharpness is 1 if each word attends to one word and 0 if all weights are equal. "
        "Structure is the part of sharpness that neither a fixed distance nor the mean over all "
        "words explains. Without --heads, two heads are drawn that have much structure and differ "
        "from each other."
    )
    return ReportPage(f"Figure 5: heads of layer {layer}", source + about, [names, *rows])
