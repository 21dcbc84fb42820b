"""
The explorer's JSON document: attention, decoding steps, beam.

A document is small enough to be sent or put into a page. A weight takes one byte: 255 times its
square root, rounded. So a faint weight keeps two digits, and the largest error is 0.004.
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
    """The best tokens with their probabilities, the likeliest first, the chosen one among them."""


@dataclass(frozen=True)
class Node:
    """
    One hypothesis of the beam at one step.

    Only the last token of the returned hypothesis is ``best``; the page marks the path to it.
    """

    token: str
    """Its newest token."""
    parent: int | None
    """Index of its parent in the step before, from 0; None at the first step."""
    log_probability: float
    """Natural logarithm of its probability so far."""
    score: float
    """Its rank score: usually the log-probability divided by the length penalty."""
    fate: RecordedStatus
    """Whether it stayed open, ended, was dropped, or was returned."""
    why: str = ""
    """The reason, such as “The 4 places in the beam went to other hypotheses.”"""


class Phrase(NamedTuple):
    """A phrase of a parser's tree: its two symbols in the target, and its words in the source."""

    opens: int
    closes: int
    """Indices of its symbols."""
    first: int
    end: int
    """Indices of its first source token and of the token after its last."""


@dataclass(frozen=True)
class ModelRecord:
    """
    The attention, steps and beam of one model for one sentence.

    Absent parts are not shown; a model without attention can still provide its steps.

    Raises `ValueError` if shapes do not fit the tokens, if a weight is not from 0 to 1, or if a
    node lacks its parent.
    """

    name: str
    """Name of the run or checkpoint."""
    source: tuple[str, ...]
    """Tokens that the encoder read, the end symbol included if it read one."""
    target: tuple[str, ...]
    """Tokens that the decoder predicted, the end symbol last."""
    start: str
    """The decoder's first input."""
    encoder: np.ndarray | None = None
    """Self-attention of the encoder."""
    decoder: np.ndarray | None = None
    """
    Masked self-attention of the decoder. Row i belongs to the step that predicted ``target[i]``,
    column i to what the decoder read then: `start`, then the target.
    """
    cross: np.ndarray | None = None
    """Attention of the decoder to the source; rows as in `decoder`."""
    text: str = ""
    """The translation."""
    score: float | None = None
    """Score of the translation."""
    steps: tuple[Step, ...] = ()
    """One for each token of the target, or none."""
    beam: tuple[tuple[Node, ...], ...] = ()
    """All candidates of each step of the search; empty if unknown."""
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
        """Convert to JSON values; numbers are rounded to the digits that the page can show."""
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
            "beam": [[_node(node) for node in nodes] for nodes in self.beam],
        }


@dataclass(frozen=True)
class ExplorerRecord:
    """
    The explorer's document.

    `heedful.visualise.explorer` makes a page of it; `to_json` is what a server sends.

    Raises `ValueError` unless there are one or two models.
    """

    title: str
    """Title above the models."""
    models: tuple[ModelRecord, ...]
    """One, or two side by side."""

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
    """Refuse weights that do not fit the tokens or are not finite."""
    if weights is None:
        return
    if weights.ndim != 4 or weights.shape[2:] != (queries, keys) or not weights.size:
        raise ValueError(
            f"{name} must have shape (layers, heads, {queries}, {keys}), without dimensions of 0, "
            f"but has shape {weights.shape}"
        )
    # In bf16 the sum of a row is not exactly one; NaN fails both comparisons.
    if not (weights.min() >= 0 and weights.max() <= 1.01):
        raise ValueError(
            f"{name} must hold weights from 0 to 1, "
            f"but holds {weights.min():.4g} to {weights.max():.4g}"
        )


def _check_beam(beam: tuple[tuple[Node, ...], ...]) -> None:
    """Refuse a beam with a hypothesis whose parent is missing."""
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
    """Encode weights as base64; of causal attention only the lower triangle."""
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


def _node(node: Node) -> dict[str, Any]:
    """Convert a node of the beam."""
    return {
        "token": node.token,
        "parent": node.parent,
        "log_probability": _short(node.log_probability),
        "score": _short(node.score),
        "fate": node.fate,
        "why": node.why,
    }


def _short(number: float) -> float | None:
    """Round to six digits, more than a page can show."""
    return float(f"{number:.6g}") if np.isfinite(number) else None
