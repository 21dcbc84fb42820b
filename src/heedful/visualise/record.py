"""
What the explorer shows: attention, the steps of decoding and the beam, as one JSON document.

A document is small enough to be sent or put into a page: a weight takes one byte, which holds its
square root in 255 parts, so that a faint weight keeps two digits and the largest error is 0.004.
"""

import base64
import json
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

FORMAT = 1

RecordedStatus = Literal["open", "ended", "dropped", "best"]
FATES: tuple[str, ...] = get_args(RecordedStatus)


@dataclass(frozen=True)
class Step:
    """
    Hold what the decoder could have chosen at one step.

    Attributes
    ----------
    candidates : tuple of (str, float)
        The best tokens with their probabilities, the likeliest first, the chosen one among them.

    Notes
    -----
    Ten are plenty; the page says how much probability is left for all others.
    """

    candidates: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Node:
    """
    Hold one hypothesis of the beam at one step.

    Attributes
    ----------
    token : str
        The token by which it grew at this step.
    parent : int or None
        Which hypothesis of the step before it grew from, counted from 0; None at the first step.
    log_probability : float
        Natural logarithm of its probability so far.
    score : float
        What it was ranked by: as a rule the logarithm divided by the length penalty.
    fate : {'open', 'ended', 'dropped', 'best'}
        Whether it went on, ended, was given up, or ended and was returned.
    why : str, default ""
        A sentence on the fate, such as “The 4 places in the beam went to others.”

    Notes
    -----
    Only the last token of the returned hypothesis is ``best``; the page marks the way to it.
    """

    token: str
    parent: int | None
    log_probability: float
    score: float
    fate: RecordedStatus
    why: str = ""


@dataclass(frozen=True)
class ModelRecord:
    """
    Hold what one model did with one sentence.

    Attributes
    ----------
    name : str
        Of the run or checkpoint.
    source : tuple of str
        Tokens that the encoder read, the end symbol included if it read one.
    target : tuple of str
        Tokens that the decoder predicted, the end symbol last.
    start : str
        What the decoder read first.
    encoder : ndarray of float, shape (layers, heads, source, source), optional
        Self-attention of the encoder.
    decoder : ndarray of float, shape (layers, heads, target, target), optional
        Masked self-attention of the decoder. Row i belongs to the step that predicted
        ``target[i]``, column i to what the decoder read then: `start`, then the target.
    cross : ndarray of float, shape (layers, heads, target, source), optional
        Attention of the decoder to the source; rows as in `decoder`.
    text : str, default ""
        The translation.
    score : float, optional
        Of the translation.
    steps : tuple of Step, default ()
        One for each token of the target, or none.
    beam : tuple of tuple of Node, default ()
        For each step of the search all hypotheses that it weighed, or none.

    Raises
    ------
    ValueError
        If shapes do not fit the tokens, a weight is not between 0 and 1, or a node grew from none
        of the step before.

    Notes
    -----
    What is absent is not shown; an engine that tells no attention can still tell its steps.
    """

    name: str
    source: tuple[str, ...]
    target: tuple[str, ...]
    start: str
    encoder: np.ndarray | None = None
    decoder: np.ndarray | None = None
    cross: np.ndarray | None = None
    text: str = ""
    score: float | None = None
    steps: tuple[Step, ...] = ()
    beam: tuple[tuple[Node, ...], ...] = ()

    def __post_init__(self) -> None:
        source, target = len(self.source), len(self.target)
        _check_weights("encoder", self.encoder, source, source)
        _check_weights("decoder", self.decoder, target, target)
        _check_weights("cross", self.cross, target, source)
        if self.steps and len(self.steps) != target:
            raise ValueError(
                f"steps must be one for each of the {target} target tokens, "
                f"but are {len(self.steps)}"
            )
        _check_beam(self.beam)

    def document(self) -> dict[str, Any]:
        """
        Return what JSON can hold.

        Returns
        -------
        dict
            One entry of a document's ``models``.

        Notes
        -----
        Numbers are cut to the digits that the page can show.
        """
        return {
            "name": self.name,
            "text": self.text,
            "score": None if self.score is None else _short(self.score),
            "source": list(self.source),
            "target": list(self.target),
            "start": self.start,
            "encoder": _packed(self.encoder, is_lower=False),
            "decoder": _packed(self.decoder, is_lower=True),
            "cross": _packed(self.cross, is_lower=False),
            "steps": [
                [[token, _short(probability)] for token, probability in step.candidates]
                for step in self.steps
            ],
            "beam": [[_node(node) for node in nodes] for nodes in self.beam],
        }


@dataclass(frozen=True)
class ExplorerRecord:
    """
    Hold what the explorer shows.

    Attributes
    ----------
    title : str
        Line above all.
    models : tuple of ModelRecord
        One, or two side by side.

    Raises
    ------
    ValueError
        If there are fewer or more models.

    Notes
    -----
    `heedful.visualise.explorer` makes a page of it; `to_json` is what a server sends.
    """

    title: str
    models: tuple[ModelRecord, ...]

    def __post_init__(self) -> None:
        if len(self.models) not in (1, 2):
            raise ValueError(f"models must be one or two, but are {len(self.models)}")

    def document(self) -> dict[str, Any]:
        """
        Return the document as what JSON can hold.

        Returns
        -------
        dict
            With ``format``, ``title`` and ``models``.

        Notes
        -----
        For an answer that holds more than the document; `to_json` is the document alone.
        """
        return {
            "format": FORMAT,
            "title": self.title,
            "models": [model.document() for model in self.models],
        }

    def to_json(self) -> str:
        """
        Write the document.

        Returns
        -------
        str
            JSON in one line, of ASCII letters only.

        Notes
        -----
        Infinite numbers and such as are none become null, which JSON has in their place.
        """
        return json.dumps(self.document(), separators=(",", ":"), allow_nan=False)


def _check_weights(name: str, weights: np.ndarray | None, queries: int, keys: int) -> None:
    """Refuse weights that do not fit the tokens, or are none."""
    if weights is None:
        return
    if weights.ndim != 4 or weights.shape[2:] != (queries, keys) or not weights.size:
        raise ValueError(
            f"{name} must have shape (layers, heads, {queries}, {keys}), none of them 0, "
            f"but has shape {weights.shape}"
        )
    # The sums of bf16 are a little off one; what is not a number fails both comparisons.
    if not (weights.min() >= 0 and weights.max() <= 1.01):
        raise ValueError(
            f"{name} must hold weights from 0 to 1, "
            f"but holds {weights.min():.4g} to {weights.max():.4g}"
        )


def _check_beam(beam: tuple[tuple[Node, ...], ...]) -> None:
    """Refuse a beam in which a hypothesis grew from none that was there."""
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


def _packed(weights: np.ndarray | None, is_lower: bool) -> dict[str, Any] | None:
    """Write weights as base64; of the decoder's, which see no later token, the lower triangle."""
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
    """Write a node of the beam."""
    return {
        "token": node.token,
        "parent": node.parent,
        "log_probability": _short(node.log_probability),
        "score": _short(node.score),
        "fate": node.fate,
        "why": node.why,
    }


def _short(number: float) -> float | None:
    """Cut a number to six digits, which is more than a page can show."""
    return float(f"{number:.6g}") if np.isfinite(number) else None
