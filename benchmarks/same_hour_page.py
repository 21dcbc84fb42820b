"""The page and the picture of `benchmarks.same_hour`."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.report import ResultPage, origins
from heedful.experiments.page import code_block, fold, table
from heedful.experiments.record import Record
from heedful.visualise.curves import system_style
from heedful.visualise.figure_files import INK, draw_grid, drawing, save_figure

TITLES = {
    "heedful": "heedful",
    "joey": "Joey NMT 2.3.0",
    "eole": "Eole 0.6.4",
    "transformers": "transformers 5.24.0, MarianMTModel",
}


def body(record: Record) -> str:
    """Lay out the hours, the picture, the trials and the settings."""
    hours = dict(_of_kind(record.measurements, "hour"))
    parts = []
    if hours:
        size = next(iter(hours.values()))["size"]
        parts += [
            _HEAD.format_map(size),
            table(
                "toolkit | test, BLEU lower-cased | cased | validation, lower-cased | from | "
                "steps | precision, threads | parameters",
                "{title} | **{test[lower-cased]:.1f}** | {test[bleu]:.1f} | "
                "{chosen[lower-cased]:.1f} | {origin} | {steps:,} | {precision}, {threads} | "
                "{parameters:,}",
                [
                    row | {"title": TITLES[name], "origin": _origin(row["chosen"])}
                    for name, row in hours.items()
                ],
            ),
            "![BLEU on the validation text by minutes of training](same-hour.svg)",
            f"Signatures: {_signatures(hours)}.",
            *origins({TITLES[name]: row for name, row in hours.items()}),
        ]
    trials = [
        row | {"title": TITLES[name], "name": trial} | _mark(rows, trial)
        for name, rows in _of_kind(record.measurements, "trials")
        for trial, row in rows.items()
    ]
    if trials:
        shown = table(
            "toolkit | trial | minutes | steps | validation, BLEU lower-cased | ",
            "{title} | {name} | {minutes:.1f} | {steps:,} | {lower-cased:.1f} | {mark}",
            trials,
        )
        named = origins({f"{row['title']}, {row['name']}": row for row in trials})
        parts.append(fold("Trials", [_TRIALS, shown, *named, *_settings(trials)]))
    if speeds := list(_speeds(record.measurements)):
        shown = table(
            "toolkit | trial | precision, threads | steps a second | chosen",
            "{title} | {trial} | {way} | {speed} | {mark}",
            speeds,
        )
        first = {
            TITLES[name]: next(iter(ways.values()))
            for name, ways in _of_kind(record.measurements, "ways")
        }
        parts.append(fold("Speeds", [_SPEEDS, shown, *origins(first)]))
    return "\n\n".join(parts)


def _of_kind(measurements: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Any]]:
    """List the measurements of a kind by system."""
    for name in TITLES:
        if rows := measurements.get(name, {}).get(kind):
            yield name, rows


def _speeds(measurements: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """List the speeds of each toolkit: of each precision and number of threads, then of trials."""
    for name, ways in _of_kind(measurements, "ways"):
        best = max(ways, key=lambda way: float(ways[way]["steps_per_second"]))
        speeds = measurements[name].get("speeds", {})
        first, *_ = [*speeds, "first"]
        rows = [(first, way, ways[way], "**yes**" if way == best else "") for way in ways]
        rows += [(trial, best, speeds[trial], "") for trial in speeds]
        for trial, way, row, mark in rows:
            speed = ", ".join(f"{rate:.2f}" for rate in row["rounds"])
            yield {"title": TITLES[name], "trial": trial, "way": way, "speed": speed, "mark": mark}


def _origin(chosen: Mapping[str, Any]) -> str:
    """Name the checkpoint whose translations are scored."""
    if "averaged" in chosen:
        return f"average of {chosen['averaged']}"
    return f"minute {chosen['minutes']:.0f}"


def _mark(rows: Mapping[str, Any], trial: str) -> dict[str, str]:
    """Mark the trial whose settings the hour uses."""
    best = max(rows, key=lambda name: float(rows[name]["lower-cased"]))
    return {"mark": "**chosen**" if trial == best else ""}


def _signatures(hours: Mapping[str, Any]) -> str:
    """List the different signatures of BLEU."""
    every = dict.fromkeys(text for row in hours.values() for text in row["test"]["signatures"])
    return ", ".join(f"`{text}`" for text in every)


def _settings(trials: list[dict[str, Any]]) -> Iterator[str]:
    """Write the settings of each trial in its toolkit's format."""
    for row in trials:
        yield f"{row['title']}, {row['name']}:"
        yield code_block([json.dumps(row["config"])], "json")


def draw(measurements: Mapping[str, Any], out: Path) -> None:
    """Draw the validation scores by minute, and the test score after the last minute."""
    hours = dict(_of_kind(measurements, "hour"))
    if not hours:
        return
    with drawing(8.0):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.4, 4.2), dpi=200, facecolor="white")
        axes = figure.add_axes((0.08, 0.11, 0.86, 0.86))
        draw_grid(axes)
        axes.set_xlabel("minutes of training", color=INK)
        axes.set_ylabel("BLEU, lower-cased", color=INK)
        end = max(row["minutes"] for hour in hours.values() for row in hour["curve"])
        lines = []
        for index, (name, hour) in enumerate(hours.items()):
            style = system_style(index)
            minutes = [row["minutes"] for row in hour["curve"]]
            scores = [row["lower-cased"] for row in hour["curve"]]
            (line,) = axes.plot(minutes, scores, markersize=4, **style)
            tested = hour["test"]["lower-cased"]
            axes.plot([1.04 * end], [tested], "*", markersize=9, color=style["color"])
            label = f"{TITLES[name]}, test {tested:.1f}"
            lines.append((tested, label, line))
        lines.sort(key=lambda entry: -entry[0])
        labels = [label for _, label, _ in lines]
        box = (0.93, 0.02)
        handles = [line for _, _, line in lines]
        legend = axes.legend(handles, labels, loc="lower right", bbox_to_anchor=box)
        legend.get_frame().set(edgecolor="none", facecolor="white", alpha=0.8)
        for text in legend.get_texts():
            text.set_color(INK)
        axes.text(1.04 * end, axes.get_ylim()[0], "test", color=INK, ha="center", va="bottom")
        save_figure(figure, out)


_HEAD = (
    "Each toolkit trains a Transformer for the same time on Multi30k English-German, from the same "
    "raw text. The time is counted in steps, at the speeds that were measured on one idle machine, "
    "where the toolkits took turns. Models have {layers} layers on each side, "
    "width {width} and inner width {inner}; the last column counts their parameters without "
    "embeddings. Each toolkit prepares its own subwords, outside the hour. The hour includes the "
    "reading of data. Nothing is validated during training. Then the checkpoints of every fifth "
    "minute and the average of the last ten translate the validation text with beam 5. The best of "
    "them translates test_2016_flickr once. Drivers average the weights where a toolkit has no "
    "command for this."
)
_TRIALS = (
    "Each toolkit has two trials. The first uses the schedule and optimizer of the toolkit's "
    "documentation or recipe. The second uses heedful's choices: the learning rate of the recipe "
    "`multi30k`, 4,000 subwords, and a cosine schedule if the toolkit has one. The first trial of "
    "Joey NMT has the highest learning rate of its `transformer_small.yaml`, that of Eole the rate "
    "of its `wmt17_ende_spm.yaml` at this width. `transformers` documents learning rates for "
    "fine-tuning only; its first trial has Joey NMT's rate. The warm-up is a share of the steps. "
    "Dropout is 0.3 in all trials, because short trials do not "
    "show which dropout is best for an hour."
)
_SPEEDS = (
    "The trials and the one-hour training runs use each toolkit's fastest combination of "
    "precision and threads. The number of steps of a training run follows from the mean speed of "
    "its trial. Joey NMT has no setting for bf16 on a CPU, so the benchmark sets the precision of "
    "autocast."
)
PAGE = ResultPage("same-hour", "The same hour for four toolkits", {"same-hour": body})
