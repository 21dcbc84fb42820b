"""
What a translator gives back: text, scores, subwords, and on request where it looked.

What is said about a translation beside its text: which word translates which.

No torch here, so that translations can be held where there is none.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from heedful.alignment.links import write_links
from heedful.arguments import checked
from heedful.errors import MissingExtra, SettingError
from heedful.visualise.heatmap import AttentionPlot


@dataclass(frozen=True)
class WordAlignment:
    """
    Hold the words of a sentence pair and which translates which.

    Attributes
    ----------
    source_words : tuple of str
        What spaces set apart in the source.
    target_words : tuple of str
        What spaces set apart in the translation.
    links : tuple of (int, int)
        Numbers of a source word and of a target word, counted from 0, in order.

    Notes
    -----
    ``str(alignment)`` is the line that alignment files have: ``0-0 1-2``.
    """

    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    links: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        return write_links(self.links)


class TranslationNote(NamedTuple):
    """
    Hold what is said about one translation beside its text.

    Attributes
    ----------
    alignment : WordAlignment, optional
        If it was asked for.
    text : str, optional
        The text with its unknown words replaced, if it has any and that was asked for.

    Notes
    -----
    What a `Translation` is completed with.
    """

    alignment: WordAlignment | None = None
    text: str | None = None


@dataclass(frozen=True)
class Attention:
    """
    Hold the attention weights of every layer and head for one sentence pair.

    Attributes
    ----------
    source_tokens : tuple of str
        Subwords of the source, the end symbol included.
    target_tokens : tuple of str
        Subwords that the decoder predicts at each position, the end symbol last.
    encoder : ndarray of float, shape (layers, heads, source, source)
        Self-attention of the encoder.
    decoder : ndarray of float, shape (layers, heads, target, target)
        Masked self-attention of the decoder; its columns are the decoder's inputs, which are the
        target tokens moved right by one.
    cross : ndarray of float, shape (layers, heads, target, source)
        Attention of the decoder to the source.

    Notes
    -----
    Row i of `cross` is where the decoder looked when it predicted target token i.
    """

    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    encoder: Float[np.ndarray, "layers heads source source"]
    decoder: Float[np.ndarray, "layers heads target target"]
    cross: Float[np.ndarray, "layers heads target source"]

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

        Parameters
        ----------
        kind : {'cross', 'encoder', 'decoder'}, default 'cross'
            Whose attention.
        layer : int, default -1
            Counted from 1, or from the last, -1.
        head : int, optional
            Counted likewise; the mean and every head when absent.

        Returns
        -------
        AttentionPlot
            Shown by a notebook; `save` writes a file, `figure` is matplotlib's.

        Notes
        -----
        A row is a token that attends, a column one that is attended to. Needs matplotlib.
        """
        weights = getattr(self, kind)[self._number("layer", layer, len(self.cross))]
        if head is not None:
            weights = weights[self._number("head", head, len(weights))]
        rows = self.source_tokens if kind == "encoder" else self.target_tokens
        # The decoder reads what it wrote one step before; the first of its inputs is the start.
        read = ("▶", *self.target_tokens[:-1]) if kind == "decoder" else self.source_tokens
        title = f"{kind} attention, layer {layer}" + (f", head {head}" if head else "")
        return AttentionPlot(weights, rows, read, title)

    def _number(self, what: str, number: int, count: int) -> int:
        """Turn a number that counts from 1, or from the last, into an index."""
        if not 1 <= abs(number) <= count:
            raise SettingError(
                f"`{what}` must be from 1 to {count}, or from -1, the last, back to -{count}, but "
                f"is {number}."
            )
        return number - 1 if number > 0 else count + number

    def _repr_png_(self) -> bytes | None:
        """Show the last layer's attention to the source in a notebook, if matplotlib is there."""
        try:
            return self.plot()._repr_png_()
        except MissingExtra:
            return None


@dataclass(frozen=True)
class Translation:
    """
    Hold one translated line.

    Attributes
    ----------
    text : str
        The translation.
    score : float
        Log-probability divided by the length penalty; 0 for an empty line.
    tokens : tuple of str
        Its subwords, without special symbols.
    log_probability : float
        Natural logarithm of the probability of the whole translation.
    alternatives : tuple of Translation
        The next best ones, if more than one was asked for.
    attention : Attention, optional
        Only if it was asked for.
    alignment : WordAlignment, optional
        Its words and those of the source, and which translates which; only if it was asked for.
    log_probabilities : tuple of float
        Natural logarithm of the probability of each of its subwords, then of the end symbol; only
        if they were asked for.

    Notes
    -----
    A hypothesis that was cut at the length limit ends without an end symbol.
    """

    text: str
    score: float
    tokens: tuple[str, ...]
    log_probability: float
    alternatives: tuple["Translation", ...] = ()
    attention: Attention | None = field(default=None, repr=False)
    alignment: WordAlignment | None = field(default=None, repr=False)
    log_probabilities: tuple[float, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        others = f", {len(self.alternatives)} alternatives" if self.alternatives else ""
        return f"Translation({self.text!r}, score={self.score:.4g}{others})"

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """Show the text, and alternatives with their scores, in a notebook."""
        rows = "".join(
            f"<tr><td>{one.score:.3f}</td><td style='text-align: left'>{html.escape(one.text)}</td>"
            for one in (self, *self.alternatives)
        )
        return f"<table><tr><th>score</th><th>translation</th></tr>{rows}</table>"


def with_notes(translation: Translation, notes: Sequence[TranslationNote]) -> Translation:
    """
    Complete a translation and its alternatives.

    Parameters
    ----------
    translation : Translation
        As the search gave it.
    notes : sequence of TranslationNote
        What is known of its words, then of those of its alternatives.

    Returns
    -------
    Translation
        With its alignment, and with its text where unknown words were replaced.

    Notes
    -----
    A note without text leaves the text as it is.
    """
    first, *others = notes
    return replace(
        translation,
        text=translation.text if first.text is None else first.text,
        alignment=first.alignment,
        alternatives=tuple(
            with_notes(other, [note])
            for other, note in zip(translation.alternatives, others, strict=True)
        ),
    )
