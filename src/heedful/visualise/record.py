"""
The explorer's JSON document: attention, decoding steps and beam.

A document is small enough to be sent or embedded in a page. A weight takes one byte: 255 times its
square root, rounded. This keeps small weights accurate, and the largest error is 0.004.
"""

import base64
import json
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

FORMAT = 1

RecordedStatus = Literal["open", "ended", "dropped", "best"]
FATES: tuple[str, ...] = get_args(RecordedStatus)


@dataclass(frozen=True)
class Step:
    """The candidates of the decoder at one step."""

    candidates: tuple[tuple[str, float], ...]
    """The best tokens and the chosen token with their probabilities, the most probable first."""


@dataclass(frozen=True)
class Node:
    """
    One hypothesis of the beam at one step.

    The last node of the returned hypothesis has the fate ``best``; the page marks the path to it.
    """

    token: str
    """The last token of the hypothesis."""
    parent: int | None
    """Index of its parent among the nodes of the previous step, from 0; None at the first step."""
    log_probability: float
    """Natural logarithm of the probability of all its tokens."""
    score: float
    """Score by which hypotheses are ranked, usually log-probability divided by length penalty."""
    fate: RecordedStatus
    """Whether it stayed open, ended, was dropped, or was returned."""
    why: str = ""
    """The reason for the fate, such as “The 4 places in the beam went to other hypotheses.”"""

    def document(self) -> dict[str, Any]:
        """Convert to JSON values."""
        names = ("log_probability", "score")
        return vars(self) | {name: _short(getattr(self, name)) for name in names}


class Phrase(NamedTuple):
    """A phrase of a parser's tree: its two brackets in the target, and its words in the source."""

    opens: int
    closes: int
    """Index of the closing bracket; `opens` is the index of the opening bracket."""
    first: int
    end: int
    """Index after its last source token; `first` is the index of its first source token."""


@dataclass(frozen=True)
class ModelRecord:
    """
    The attention, steps and beam of one model for one sentence.

    The page omits absent parts; a model without attention can still provide its steps.

    Raises `ValueError` if shapes do not fit the tokens, if a weight is not from 0 to 1, or if a
    node lacks its parent.
    """

    name: str
    """Name of the run or checkpoint."""
    source: tuple[str, ...]
    """Tokens that the encoder read, with an end symbol if the model uses one in the source."""
    target: tuple[str, ...]
    """Tokens that the decoder predicted, the end symbol last."""
    start: str
    """The decoder's first input."""
    encoder: np.ndarray | None = None
    """Self-attention of the encoder."""
    decoder: np.ndarray | None = None
    """
    Masked self-attention of the decoder. Row i belongs to the step that predicted ``target[i]``,
    and column i to the decoder's input at that step: `start`, then the target tokens.
    """
    cross: np.ndarray | None = None
    """Attention of the decoder to the source; rows as in `decoder`."""
    text: str = ""
    """The translation."""
    score: float | None = None
    """Score of the translation."""
    steps: tuple[Step, ...] = ()
    """One step for each token of the target, or none."""
    beam: tuple[tuple[Node, ...], ...] = ()
    """All hypotheses of each step of the search; empty if unknown."""
    phrases: tuple[Phrase, ...] = ()
    """Phrases of a parser's tree."""

    def __post_init__(self) -> None:
        source, target = len(self.source), len(self.target)
        _check_weights("encoder", self.encoder, source, source)
        _check_weights("decoder", self.decoder, target, target)
        _check_weights("cross", self.cross, target, source)
        if self.steps and len(self.steps) != target:
            raise ValueError(
                f"there must be one step for each of the {target} target tokens, but there are "
                f"{len(self.steps)}"
            )
        _check_beam(self.beam)
        for phrase in self.phrases:
            opens, closes, first, end = phrase
            if not (0 <= opens < closes < target and 0 <= first < end <= source):
                raise ValueError(f"a phrase must lie within the tokens, but is {phrase}")

    def document(self) -> dict[str, Any]:
        """Convert to JSON values; numbers are rounded to six significant digits."""
        return {
            "name": self.name,
            "text": self.text,
            "score": None if self.score is None else _short(self.score),
            "source": list(self.source),
            "target": list(self.target),
            "start": self.start,
            "encoder": _pack(self.encoder, is_lower=False),
            "decoder": _pack(self.decoder, is_lower=True),
            "cross": _pack(self.cross, is_lower=False),
            "steps": [
                [[token, _short(probability)] for token, probability in step.candidates]
                for step in self.steps
            ],
            "phrases": [list(phrase) for phrase in self.phrases],
            "beam": [[node.document() for node in nodes] for nodes in self.beam],
        }


@dataclass(frozen=True)
class ExplorerRecord:
    """
    The explorer's document.

    `heedful.visualise.explorer` makes a page from it; a server sends the result of `to_json`.

    Raises `ValueError` unless there are one or two models.
    """

    title: str
    """Title above the models."""
    models: tuple[ModelRecord, ...]
    """One model, or two models shown side by side."""

    def __post_init__(self) -> None:
        if len(self.models) not in (1, 2):
            raise ValueError(f"there must be one or two models, but there are {len(self.models)}")

    def document(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {
            "format": FORMAT,
            "title": self.title,
            "models": [model.document() for model in self.models],
        }

    def to_json(self) -> str:
        """Serialize the document; infinity and NaN become null, because JSON has neither."""
        return json.dumps(self.document(), separators=(",", ":"), allow_nan=False)


def _check_weights(name: str, weights: np.ndarray | None, queries: int, keys: int) -> None:
    """Refuse weights that do not fit the tokens or are not from 0 to 1."""
    if weights is None:
        return
    if weights.ndim != 4 or weights.shape[2:] != (queries, keys) or not weights.size:
        raise ValueError(
            f"{name} must have shape (layers, heads, {queries}, {keys}), without dimensions of 0, "
            f"but has shape {weights.shape}"
        )
    # Rounding in bf16 may raise a weight slightly above 1; NaN fails both comparisons.
    if not (weights.min() >= 0 and weights.max() <= 1.01):
        raise ValueError(
            f"{name} must hold weights from 0 to 1, "
            f"but holds {weights.min():.4g} to {weights.max():.4g}"
        )


def _check_beam(beam: tuple[tuple[Node, ...], ...]) -> None:
    """Refuse a beam that has a hypothesis without its parent."""
    before = 0
    for step, nodes in enumerate(beam, start=1):
        for node in nodes:
            fits = node.parent is None if step == 1 else node.parent in range(before)
            if not fits:
                allowed = "None" if step == 1 else f"below {before}"
                raise ValueError(
                    f"a parent at step {step} of the beam must be {allowed}, but is {node.parent}"
                )
            if node.fate not in FATES:
                raise ValueError(f"a fate must be one of {FATES}, but is {node.fate!r}")
        before = len(nodes)


def _pack(weights: np.ndarray | None, is_lower: bool) -> dict[str, Any] | None:
    """Encode weights as base64; for causal attention, encode only the lower triangle."""
    if weights is None:
        return None
    layers, heads, queries, keys = weights.shape
    codes = np.rint(255 * np.sqrt(np.clip(weights.astype(np.float32), 0, 1))).astype(np.uint8)
    if is_lower:
        codes = codes[:, :, *np.tril_indices(queries)]
    return {
        "layers": layers,
        "heads": heads,
        "queries": queries,
        "keys": keys,
        "weights": base64.b64encode(codes.tobytes()).decode("ascii"),
    }


def _short(number: float) -> float | None:
    """Round to six significant digits, more than a page shows; None if not finite."""
    return float(f"{number:.6g}") if np.isfinite(number) else None
