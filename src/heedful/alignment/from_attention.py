"""
Word alignments from a model's attention.

::

    cross attention (layers, heads, target, source)
      └ a layer, the mean of its heads ─ subwords to words ─ the word with the most weight ─ links

A translator is never trained on word alignments, but it attends to the words that it translates.
How well its attention shows these words depends on the layer. In models of six layers that were
trained for days, the penultimate layer is best (Garg et al. 2019, “Jointly Learning to Align and
Translate with Transformer Models”). In models of two to four layers, on the toy corpus, the last
layer is best. `rate_layers` rates each layer against gold links; a few hundred pairs suffice.
Attention weights are NumPy arrays, so the module needs neither a model nor torch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float

from heedful.alignment.links import GoldLinks, LinkCounts, Links, count_links
from heedful.alignment.words import Unit
from heedful.errors import SettingError

# With at least this many layers the penultimate layer aligns best; with fewer, the last layer.
_DEEP = 6


@dataclass(frozen=True)
class Extraction:
    """
    The settings that determine how links are extracted from attention.

    Garg et al. (2019) use the mean of the penultimate layer's heads. In lower layers, the step that
    reads a target word attends more to the aligned source word than the step that predicts the
    target word (Chen et al. 2020, Kobayashi et al. 2020).
    """

    layer: int | Literal["mean"] = 0
    """
    Decoder layer, counted from 1, or backward from -1 (the last layer). “mean” is the mean of all
    layers (Gehring et al. 2017). 0 is the penultimate layer if there are six or more; otherwise it
    is the last.
    """
    head: int = 0
    """A head of the layer, counted from 1; 0 for the mean of all heads."""
    shift: bool = False
    """Whether to use the step that reads a target word, not the step before, which predicts it."""
    threshold: float = 0.0
    """
    All source words with at least this share of the attention are linked; 0 links only the word
    with the largest share.
    """

    @classmethod
    def parse(cls, text: str) -> "Extraction":
        """
        Parse an extraction as users write it.

        `text`: parts separated by commas: ``layer=2`` or ``layer=mean``, ``head=1``, ``shift``,
        ``threshold=0.3``; empty for the defaults.

        Raises `SettingError` for anything else.

        >>> Extraction.parse("layer=-1,shift")
        Extraction(layer=-1, head=0, shift=True, threshold=0.0)
        """
        values: dict[str, int | float | bool | str] = {}
        for part in filter(None, text.split(",")):
            name, equals, value = part.partition("=")
            try:
                if name in values:
                    raise ValueError
                if name == "shift" and not equals:
                    values[name] = True
                elif (name, value) == ("layer", "mean"):
                    values[name] = value
                elif (name == "layer" and int(value)) or (name == "head" and int(value) > 0):
                    values[name] = int(value)
                elif name == "threshold" and 0.0 < float(value) <= 1.0:
                    values[name] = float(value)
                else:
                    raise ValueError
            except ValueError:
                raise SettingError(
                    "the settings for alignments must be valid, distinct and separated by "
                    f"commas, but {part!r} in {text!r} is invalid or repeated; examples are "
                    "layer=2, layer=-1 (the last), layer=mean, head=1, shift, and threshold=0.3 "
                    "(above 0, at most 1)."
                ) from None
        return cls(**values)  # type: ignore[arg-type]

    @property
    def hard(self) -> "Extraction":
        """The same extraction without a threshold: one source word for each target word."""
        return replace(self, threshold=0.0)

    def __str__(self) -> str:
        parts = [f"layer={self.layer}" if self.layer else ""]
        parts += [f"head={self.head}" if self.head else "", "shift" if self.shift else ""]
        parts += [f"threshold={self.threshold:g}" if self.threshold else ""]
        return ",".join(filter(None, parts))

    def weights(
        self, cross: Float[np.ndarray, "layers heads target source"]
    ) -> Float[np.ndarray, "tokens source"]:
        """Select the weights of the layer and head, with one row for each target token."""
        # Row i predicts token i and row i + 1 reads it, so `shift` drops the first row.
        self.check(*cross.shape[:2])
        is_mean = self.layer == "mean"
        chosen = cross.mean(axis=0) if is_mean else cross[self._place(cross.shape[0])]
        mean = chosen[self.head - 1] if self.head else chosen.mean(axis=0)
        return mean[1:] if self.shift else mean[:-1]

    def check(self, layers: int, heads: int) -> None:
        """Refuse layers and heads that a model does not have."""
        if not 0 <= self._place(layers) < layers:
            raise SettingError(
                f"alignments need a decoder layer from 1 to {layers}, or from -1 (the "
                f"last) to -{layers}, but layer={self.layer} was given."
            )
        if self.head > heads:
            raise SettingError(
                f"alignments need a head from 1 to {heads}, but head={self.head} was given."
            )

    def _place(self, layers: int) -> int:
        """Find the index of the layer."""
        if not self.layer or self.layer == "mean":
            return layers - 2 if layers >= _DEEP else layers - 1
        return self.layer - 1 if self.layer > 0 else layers + self.layer


def word_weights(
    weights: Float[np.ndarray, "tokens source"],
    source: Sequence[Unit],
    target: Sequence[Unit],
) -> Float[np.ndarray, "target_units source_units"]:
    """Turn attention between subwords into attention between words."""
    # Weights are summed over source subwords and averaged over target subwords. On the toy corpus
    # this method makes a fifth fewer errors than linking two words if any of their subwords are
    # linked.
    looked_at = np.zeros((weights.shape[1], len(source)))
    looking = np.zeros((len(target), weights.shape[0]))
    for column, unit in enumerate(source):
        looked_at[unit.pieces, column] = 1.0
    for row, unit in enumerate(target):
        looking[row, unit.pieces] = 1.0 / len(unit.pieces)
    return looking @ weights @ looked_at


def attention_links(
    cross: Float[np.ndarray, "layers heads target source"],
    source: Sequence[Unit],
    target: Sequence[Unit],
    extraction: Extraction,
) -> Links:
    """Extract the links between two sentences from the attention of a model."""
    # Attention to the source's end symbol is ignored, because models direct unused attention to it.
    if not source or not target:
        return frozenset()
    weights = word_weights(extraction.weights(cross), source, target)
    if extraction.threshold:
        linked = weights >= extraction.threshold
    else:
        linked = weights.argmax(axis=1)[:, None] == np.arange(len(source))
    return frozenset(
        (i, j)
        for row, column in zip(*map(np.ndarray.tolist, linked.nonzero()), strict=True)
        for i in source[column].words
        for j in target[row].words
    )


def rate_layers(
    pairs: Iterable[tuple[np.ndarray, Sequence[Unit], Sequence[Unit], GoldLinks]],
) -> dict[Extraction, LinkCounts]:
    """Measure how well each layer aligns, with and without the shift."""
    rated: dict[Extraction, LinkCounts] = {}
    for cross, source, target, gold in pairs:
        for layer in range(cross.shape[0], 0, -1):
            for shift in (False, True):
                extraction = Extraction(layer, shift=shift)
                links = attention_links(cross, source, target, extraction)
                rated[extraction] = rated.get(extraction, LinkCounts()) + count_links(links, gold)
    return dict(sorted(rated.items(), key=lambda item: item[1].error_rate))
