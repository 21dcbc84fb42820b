"""What a translator gives back: text, scores, subwords, and on request where it looked."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float

from heedful.workflow.note import Alignment, Note


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
    alignment : Alignment, optional
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
    alignment: Alignment | None = field(default=None, repr=False)
    log_probabilities: tuple[float, ...] = field(default=(), repr=False)


def noted(translation: Translation, notes: Sequence[Note]) -> Translation:
    """
    Complete a translation and its alternatives.

    Parameters
    ----------
    translation : Translation
        As the search gave it.
    notes : sequence of Note
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
            noted(other, [note])
            for other, note in zip(translation.alternatives, others, strict=True)
        ),
    )
