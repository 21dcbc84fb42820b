"""
The result of a translation: text, scores, subwords, links, and attention on request.

This module does not import torch, so translations can be read without it.
"""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from heedful.alignment.links import write_links
from heedful.arguments import checked
from heedful.errors import HeedfulError, MissingExtra, SettingError
from heedful.search.hypothesis import Hypothesis
from heedful.text.blanks import outer_blanks
from heedful.text.lines import without_controls
from heedful.text.reading.note import ReadingNote
from heedful.tokenization.tokenizer import Tokenizer
from heedful.visualise.heatmap import AttentionPlot


@dataclass(frozen=True)
class WordAlignment:
    """
    The words of a sentence pair and the links between them.

    ``str(alignment)`` is a line of an alignment file: ``0-0 1-2``.
    """

    source_words: tuple[str, ...]
    """Words of the source, split at spaces."""
    target_words: tuple[str, ...]
    """Words of the translation, split at spaces."""
    links: tuple[tuple[int, int], ...]
    """Pairs of source and target word indices, counted from 0, in order."""

    def __str__(self) -> str:
        return write_links(self.links)

    def between_spaces(self, source: str) -> "WordAlignment":
        """
        Return the alignment with source words separated only by spaces, as in other tools.

        A model reads all white space as spaces, but here, words joined by a no-break space or a tab
        are one word.
        """
        parts = [part.split() for part in source.split(" ")]
        parts = [part for part in parts if part]
        if sum(map(len, parts)) != len(self.source_words):
            return self
        place = [number for number, part in enumerate(parts) for _ in part]
        links = {(place[i], j) for i, j in self.links}
        words = tuple(part for part in source.split(" ") if part.strip())
        return WordAlignment(words, self.target_words, tuple(sorted(links)))


class TranslationNote(NamedTuple):
    """Additional information about a translation."""

    alignment: WordAlignment | None = None
    """The alignment, if requested."""
    text: str | None = None
    """The text with its unknown words replaced, if it has any and if requested."""


@dataclass(frozen=True)
class Attention:
    """
    Attention weights of every layer and head for one sentence pair.

    Row i of `cross` is the attention of the decoder when it predicts target token i.
    """

    source_tokens: tuple[str, ...]
    """Subwords of the source, the end symbol included."""
    target_tokens: tuple[str, ...]
    """Subwords that the decoder predicts at each position, the end symbol last."""
    encoder: Float[np.ndarray, "encoder_layers encoder_heads source source"]
    """
    Self-attention of the encoder; no layers for an encoder without attention, such as a recurrent
    encoder.
    """
    decoder: Float[np.ndarray, "decoder_layers decoder_heads target target"]
    """
    Masked self-attention of the decoder; its columns are the decoder's inputs, the target tokens
    shifted right by one.
    """
    cross: Float[np.ndarray, "cross_layers cross_heads target source"]
    """Cross-attention of the decoder to the source."""

    def __repr__(self) -> str:
        layers, heads, target, source = self.cross.shape
        return (
            f"Attention({source} source tokens, {target} target tokens, {layers} x {heads} heads)"
        )

    @checked
    def plot(
        self,
        kind: Literal["cross", "encoder", "decoder"] = "cross",
        *,
        layer: int = -1,
        head: int | None = None,
    ) -> AttentionPlot:
        """
        Draw one layer as heat maps.

        `layer`: number of the layer, from 1, or from the end, where -1 is the last. `head`: counted
        in the same way; the mean and every head if None.

        Rows are query tokens, and columns are key tokens. This needs matplotlib.
        """
        layers = getattr(self, kind)
        if not len(layers):
            raise SettingError(
                f"`kind` must name attention of the model, but the model has no {kind} attention; "
                "choose another."
            )
        weights = layers[self._number("layer", layer, len(layers))]
        if head is not None:
            weights = weights[self._number("head", head, len(weights))]
        rows = self.source_tokens if kind == "encoder" else self.target_tokens
        # The decoder's inputs are its outputs shifted by one, after the start symbol.
        read = ("▶", *self.target_tokens[:-1]) if kind == "decoder" else self.source_tokens
        title = f"{kind} attention, layer {layer}" + (f", head {head}" if head else "")
        return AttentionPlot(weights, rows, read, title)

    def _number(self, what: str, number: int, count: int) -> int:
        """Convert a number that counts from 1, or backward from -1, to an index."""
        if not 1 <= abs(number) <= count:
            raise SettingError(
                f"`{what}` must be from 1 to {count}, or, counted from the end, from -1 to "
                f"-{count}, but is {number}."
            )
        return number - 1 if number > 0 else count + number

    def _repr_png_(self) -> bytes | None:
        """Show the last layer's cross-attention in a notebook, if matplotlib is installed."""
        try:
            return self.plot()._repr_png_()
        except MissingExtra:
            return None


@dataclass(frozen=True)
class Translation:
    """
    One translated line.

    Notes
    -----
    A hypothesis that was cut at the length limit lacks an end symbol.
    """

    text: str
    score: float
    """Log-probability divided by length penalty, plus any coverage penalty; 0 if not translated."""
    tokens: tuple[str, ...]
    """Subwords of the translation, without special symbols."""
    log_probability: float
    """Natural logarithm of the probability of the whole translation."""
    alternatives: tuple["Translation", ...] = ()
    """The next best translations, if requested."""
    attention: Attention | None = field(default=None, repr=False)
    """Attention weights, if requested."""
    alignment: WordAlignment | None = field(default=None, repr=False)
    """The word alignment, if requested."""
    log_probabilities: tuple[float, ...] = field(default=(), repr=False)
    """Natural logarithms of the probabilities of its subwords and the end symbol, if requested."""
    replaced_controls: int = field(default=0, repr=False)
    """Number of control characters and line ends in the model's output; each became a space."""
    reading: ReadingNote | None = field(default=None, repr=False)
    """Notes on the preparation of the line, if it was read as text."""

    def __repr__(self) -> str:
        others = f", {len(self.alternatives)} alternatives" if self.alternatives else ""
        return f"Translation({self.text!r}, score={self.score:.4g}{others})"

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """Show the text, and alternatives with their scores, in a notebook."""
        rows = "".join(
            f"<tr><td>{row.score:.3f}</td><td style='text-align: left'>{html.escape(row.text)}</td>"
            for row in (self, *self.alternatives)
        )
        return f"<table><tr><th>score</th><th>translation</th></tr>{rows}</table>"


def check_found(
    hypotheses: Sequence[Hypothesis], line: int, restricted: bool, rules: str = ""
) -> None:
    """
    Refuse a missing or invalid translation.

    `restricted`: whether the task's rules or options may exclude all translations. `rules`: names
    of the user's rules, which may do the same.

    Raises `HeedfulError` if there is no translation, or if its score is not finite.
    """
    score = hypotheses[0].score if hypotheses else -math.inf
    if score == -math.inf and restricted:
        raise HeedfulError(
            f"line {line} has no translation that satisfies all constraints of this search, such "
            "as well-formed trees, min_length, target_prefix or force_phrases; change these "
            "constraints. If none is set, the weights have diverged: use earlier weights with "
            "--weights, or train again."
        )
    if not math.isfinite(score):
        raise divergence_error(f"the score of line {line} is not finite", rules)


def divergence_error(symptom: str, rules: str = "") -> HeedfulError:
    """Build the error for a model whose results are not finite, perhaps because of some rules."""
    if rules:
        return HeedfulError(
            f"a search must give finite scores, but {symptom}: a rule of `search.rules` ({rules}) "
            "forbids every token or returns NaN, or these weights have diverged. Translate "
            "without the rules (--rules '') to see which."
        )
    return HeedfulError(
        f"the model must give finite numbers, but {symptom}: these weights have diverged. Use "
        "earlier ones with --weights, or train again."
    )


def without_repeats(translation: Translation) -> Translation:
    """
    Drop alternatives with the same text as the translation or an earlier alternative.

    Texts that differ only in subwords, outer blanks or repetitions that were cut count as equal.
    """
    by_text = {translation.text.strip(): translation}
    for alternative in translation.alternatives:
        by_text.setdefault(alternative.text.strip(), alternative)
    return replace(translation, alternatives=tuple(by_text.values())[1:])


def as_translation(
    tokenizer: Tokenizer,
    hypotheses: Sequence[Hypothesis],
    attention: Attention | None = None,
    probabilities: bool = False,
) -> Translation:
    """Convert the hypotheses of a line, best first, to a translation with alternatives."""
    best, *others = (
        decoded_translation(
            tokenizer,
            hypothesis.tokens,
            hypothesis.score,
            hypothesis.log_probability,
            hypothesis.log_probabilities if probabilities else (),
        )
        for hypothesis in hypotheses
    )
    return replace(best, alternatives=tuple(others), attention=attention)


def decoded_translation(
    tokenizer: Tokenizer,
    ids: Sequence[int],
    score: float,
    log_probability: float,
    log_probabilities: tuple[float, ...],
) -> Translation:
    """Convert one hypothesis to a line of text."""
    text, replaced = without_controls(tokenizer.decode(ids))
    return Translation(
        text,
        score,
        tuple(tokenizer.pieces_target(ids)),
        log_probability,
        log_probabilities=log_probabilities,
        replaced_controls=replaced,
    )


def between_blanks(translation: Translation, line: str) -> Translation:
    """Surround translations with the outer white space of their source line."""
    before, after = outer_blanks(line)
    if not before and not after:
        return translation
    return replace(
        translation,
        text=f"{before}{translation.text}{after}",
        alternatives=tuple(between_blanks(choice, line) for choice in translation.alternatives),
    )


def with_notes(translation: Translation, notes: Sequence[TranslationNote]) -> Translation:
    """Add notes to a translation and its alternatives."""
    first, *others = notes
    return replace(
        translation,
        text=translation.text if first.text is None else first.text,
        alignment=first.alignment,
        alternatives=tuple(
            with_notes(choice, [note])
            for choice, note in zip(translation.alternatives, others, strict=True)
        ),
    )
