"""The attention for a sentence as pages, heat maps, JSON and text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heedful.errors import SettingError, StorageError
from heedful.visualise.explorer import write_explorer
from heedful.visualise.figure_files import check_drawing, write_output
from heedful.visualise.heads import (
    mean_of_heads,
    measure_heads,
    rollout,
    rollout_of_decoder,
)
from heedful.visualise.multi_page import HeatmapPage, write_heatmap_pages
from heedful.visualise.record import ExplorerRecord, ModelRecord

KINDS = ("encoder", "decoder", "cross")
VIEWS = ("heads", "mean", "rollout")
_PICTURES = (".png", ".svg", ".pdf")
_PAGE = ".html"
_NUMBERS = ".json"
# Maximum number of alternatives in one line of output.
_OTHERS = 3


@dataclass(frozen=True)
class AttentionSelection:
    """The layers, heads and kinds of attention to draw."""

    kinds: tuple[str, ...] = ()
    """Some of ``encoder``, ``decoder`` and ``cross``; all if empty."""
    layers: tuple[int, ...] = ()
    """Layers, counted from 1, or backward from -1 (the last layer); all if empty."""
    heads: tuple[int, ...] = ()
    """Heads, counted from 1, or backward from -1 (the last head); all if empty."""
    view: str = "heads"
    """“heads” for every head, “mean” for the mean of each layer's heads, or “rollout”."""
    numbers: bool = False
    """Whether to write the weights as numbers into the cells."""

    def __post_init__(self) -> None:
        """Check names and combinations."""
        wrong = [kind for kind in self.kinds if kind not in KINDS]
        if wrong:
            raise SettingError(f"--kind must be one of {', '.join(KINDS)}, but is {wrong[0]!r}.")
        if self.view not in VIEWS:
            raise SettingError(f"--view must be one of {', '.join(VIEWS)}, but is {self.view!r}.")
        if self.heads and self.view != "heads":
            raise SettingError(
                f"--head chooses single heads, but --view {self.view} combines all heads; leave "
                "out one of the two options."
            )
        if self.layers and self.view == "rollout":
            raise SettingError(
                "--layer chooses single layers, but --view rollout goes through all layers; leave "
                "out one of the two options."
            )


def check_files(outs: Sequence[Path], choice: AttentionSelection) -> None:
    """
    Refuse output files that cannot be written, before the work begins.

    Raises `SettingError` for an unknown suffix, or if `choice` is set but no file is a picture.
    Raises `StorageError` for a missing folder, and `MissingExtra` if a picture is requested and
    matplotlib is not installed.
    """
    for out in outs:
        if out.suffix.lower() not in (_PAGE, _NUMBERS, *_PICTURES):
            raise SettingError(
                f"--out must end in {_PAGE} (an interactive page), {', '.join(_PICTURES)} (heat "
                f"maps) or {_NUMBERS} (the page's data), but is {str(out)!r}."
            )
        if not out.absolute().parent.is_dir():
            raise StorageError(
                f"{out} must be in an existing folder, but there is no folder {out.parent}; "
                "create it first."
            )
    drawn = [out for out in outs if out.suffix.lower() in _PICTURES]
    if drawn:
        check_drawing()
    elif choice != AttentionSelection():
        raise SettingError(
            "--view and --numbers need a picture, and --kind, --layer and --head need a picture "
            "or --measures, but no --out is a picture; name a file that ends in "
            f"{', '.join(_PICTURES)}, or leave these options out: an .html page shows everything."
        )


def write_files(record: ExplorerRecord, outs: Sequence[Path], choice: AttentionSelection) -> None:
    """
    Write pages, pictures and JSON.

    Raises `SettingError`, before anything is written, if a model lacks a kind, layer or head to
    draw.
    """
    drawn = any(out.suffix.lower() in _PICTURES for out in outs)
    pictures = sheets(record, choice) if drawn else []
    for out in outs:
        ending = out.suffix.lower()
        if ending == _PAGE:
            write_explorer(record, out)
        elif ending == _NUMBERS:
            write_output(out, f"{record.to_json()}\n".encode(), "document")
        else:
            write_heatmap_pages(pictures, out, numbers=choice.numbers)


def sheets(record: ExplorerRecord, choice: AttentionSelection) -> list[HeatmapPage]:
    """Arrange the chosen attention on pages of heat maps."""
    several = len(record.models) > 1
    return [
        sheet
        for model in record.models
        for kind in choice.kinds or _kinds_of(model)
        for sheet in _sheets_of(model, kind, choice, f"{model.name}: " if several else "")
    ]


def _sheets_of(
    model: ModelRecord, kind: str, choice: AttentionSelection, before: str
) -> Iterator[HeatmapPage]:
    """Arrange one kind of attention on pages of heat maps."""
    weights, title = _weights(model, kind), f"{before}{kind} attention"
    read = (model.start, *model.target[:-1])
    rows = model.source if kind == "encoder" else model.target
    columns = read if kind == "decoder" else model.source
    if choice.view == "rollout":
        yield HeatmapPage(
            f"{title}, all layers", (("rollout", _rollout(model, kind)),), rows, columns
        )
        return
    layers = _numbers(choice.layers, len(weights), "layer", kind, model.name)
    if choice.view == "mean":
        means = mean_of_heads(weights)
        panels = tuple((f"layer {layer}", means[layer - 1]) for layer in layers)
        yield HeatmapPage(f"{title}, mean of the heads", panels, rows, columns)
        return
    heads = _numbers(choice.heads, weights.shape[1], "head", kind, model.name)
    for layer in layers:
        maps = weights[layer - 1]
        shown = [(f"head {head}", maps[head - 1]) for head in heads]
        if not choice.heads and len(heads) > 1:
            shown.insert(0, ("mean", maps.mean(axis=0)))
        yield HeatmapPage(f"{title}, layer {layer}", tuple(shown), rows, columns)


def _kinds_of(model: ModelRecord) -> list[str]:
    """List the kinds of attention that a model has; a recurrent model has only ``cross``."""
    return [kind for kind in KINDS if getattr(model, kind) is not None]


def _weights(model: ModelRecord, kind: str) -> np.ndarray:
    """Return the weights of one kind of attention."""
    weights: np.ndarray | None = getattr(model, kind)
    if weights is None:
        raise SettingError(
            f"--kind and --view must choose attention that {model.name} has "
            f"({' and '.join(_kinds_of(model))}), but they choose {kind}; change these options."
        )
    return weights


def _rollout(model: ModelRecord, kind: str) -> np.ndarray:
    """Compute the rollout of one kind of attention; the rollout of ``cross`` uses all kinds."""
    if kind != "cross":
        return rollout(_weights(model, kind))
    _, read = rollout_of_decoder(*(_weights(model, part) for part in KINDS))
    return read


def _numbers(chosen: Sequence[int], count: int, label: str, kind: str, name: str) -> list[int]:
    """Resolve layers or heads that are counted from the end, and refuse numbers out of range."""
    for number in chosen:
        if not 1 <= abs(number) <= count:
            raise SettingError(
                f"--{label} must be from 1 to {count}, or from -1 (the last) to -{count}, for the "
                f"{kind} attention of {name}, but is {number}."
            )
    resolved = [number if number > 0 else count + 1 + number for number in chosen]
    return list(dict.fromkeys(resolved)) or list(range(1, count + 1))


def format_lines(record: ExplorerRecord) -> Iterator[str]:
    """Format the models' translations and the alternatives at each step."""
    for model in record.models:
        score = "" if model.score is None else f"   score {model.score:.3f}"
        yield f"{model.name}: {model.text}{score}"
        width = max(map(len, model.target))
        for token, step in zip(model.target, model.steps, strict=True):
            own = next(p for piece, p in step.candidates if piece == token)
            others = [(piece, p) for piece, p in step.candidates if piece != token][:_OTHERS]
            instead = ", ".join(f"{piece} {p:.3f}" for piece, p in others)
            yield f"  {token:{width}}  {own:.3f}  instead {instead}"


def format_measures(record: ExplorerRecord, choice: AttentionSelection) -> Iterator[str]:
    """Format the measures of each head (`heedful.visualise.heads.HeadMeasure`)."""
    for model in record.models:
        yield f"{model.name}: entropy in bits, largest weight, distance and offset in subwords"
        yield "  kind     layer  head  entropy  largest  distance  offset"
        for kind in choice.kinds or _kinds_of(model):
            weights = _weights(model, kind)
            layers = _numbers(choice.layers, len(weights), "layer", kind, model.name)
            heads = _numbers(choice.heads, weights.shape[1], "head", kind, model.name)
            for measure in measure_heads(weights):
                if measure.layer in layers and measure.head in heads:
                    yield (
                        f"  {kind:7}  {measure.layer:5}  {measure.head:4}  {measure.entropy:7.2f}  "
                        f"{measure.largest:7.2f}  {measure.distance:8.2f}  {measure.offset:+6.2f}"
                    )
