"""
Comparison of other model families and kinds of attention with the Transformer.

    python -m benchmarks.families speed
    python -m benchmarks.families quality [--runs FOLDER]

`speed` times a training step and a search of models of equal size, in turns (half an hour).
`quality` trains `convolutional-small` on Multi30k, in one hour. An
unfinished run is continued; a finished run is only measured again. Writes
`docs/results/families-*.json` and builds the page from them.
"""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median_high
from typing import Any

from benchmarks.report import ResultPage, arguments, data_folder
from benchmarks.speed.context import Context
from benchmarks.training import (
    chosen,
    note,
    score_sentence,
    train_on_multi30k,
    validation_table,
)
from heedful.config.load import load_config
from heedful.experiments.page import fold, table, with_names
from heedful.experiments.record import Record
from heedful.families.build import build_model
from heedful.model.weights import parameter_count

VOCABULARY = 4000
TRANSFORMER = ("model.d_model=256", "model.d_ff=384", "model.heads=4", "model.encoder_layers=3")
TRANSFORMER += ("model.decoder_layers=3",)
Measured = dict[str, Any]
Systems = dict[str, tuple[str, tuple[str, ...]]]
"""A recipe and settings, by the name of the system."""
SYSTEMS: Systems = {
    "Transformer": ("multi30k", TRANSFORMER),
    "ConvS2S": ("convolutional-small", ()),
    "ByteNet": (
        "multi30k",
        (
            *("model.encoder=bytenet", "model.decoder=bytenet", "model.d_model=256"),
            *("model.encoder_layers=15", "model.decoder_layers=14"),
        ),
    ),
    "recurrent, with attention": (
        "recurrent-small",
        ("model.recurrent.hidden_size=336", "model.recurrent.readout_size=256"),
    ),
    "Transformer, batch norm": ("multi30k", (*TRANSFORMER, "model.norm_kind=batch")),
    "Transformer, additive scores": ("multi30k", (*TRANSFORMER, "model.attention.score=additive")),
    "Transformer, windows of 8": ("multi30k", (*TRANSFORMER, "model.attention.window=8")),
    "Transformer, Fastformer in encoder and decoder": (
        "multi30k",
        (
            *TRANSFORMER,
            "model.attention.encoder=fastformer",
            "model.attention.decoder=fastformer-linear",
        ),
    ),
}


def main() -> None:
    """Measure one part, and write the page."""
    quality = partial(measure_quality, "convolutional-small")
    measure_part(__doc__, PAGE, partial(measure_speed, SYSTEMS), quality)


def measure_part(
    description: str | None,
    page: ResultPage,
    speed: Callable[[int], Measured],
    quality: Callable[[Path], tuple[Measured, Measured]],
) -> None:
    """
    Measure speed or quality, and write the page.

    `speed`: a function that measures for a given number of rounds. `quality`: a function that
    trains in a folder and returns measurements and outputs.
    """
    parser = arguments(description, page.name)
    parser.add_argument("part", choices=("speed", "quality"))
    parser.add_argument("--rounds", type=int, default=3, help="turns of each system")
    options = parser.parse_args()
    if options.part == "speed":
        measurements, outputs = speed(options.rounds), {}
    else:
        measurements, outputs = quality(options.runs)
    page.keep(f"{page.name}-{options.part}", measurements, options.commit, outputs=outputs)


def measure_quality(recipe: str, runs: Path) -> tuple[Measured, Measured]:
    """Train a recipe on Multi30k; return its scores and its translations."""
    measurements, lines = train_on_multi30k(runs / recipe, recipe)
    return measurements, {recipe: lines}


def measure_speed(systems: Systems, rounds: int) -> Measured:
    """Time steps and searches of all systems in turns."""
    turns: dict[str, Any] = {name: {"train": [], "translate": []} for name in systems}
    with tempfile.TemporaryDirectory() as folder:
        context = Context(data_folder(), Path(folder), Path(folder))
        for name, (recipe, settings) in [*systems.items()] * rounds:
            common = (*chosen(settings), "--vocabulary", VOCABULARY, "--precision", "fp32")
            common += ("--only", "heedful")
            step = context.bench("train", recipe, *common, "--batch-tokens", 1024, "--steps", 5)
            shape = ("--lines", 128, "--tokens", 20, "--batch", 32, "--source-length", 16)
            search = context.bench("translate", "--recipe", recipe, *common, *shape)
            turns[name]["train"].append(step["measurements"][0])
            turns[name]["translate"].append(search["measurements"][0])
    for name, (recipe, settings) in systems.items():
        config = load_config(recipe, [f"data.vocabulary_size={VOCABULARY}", *settings])
        model = build_model(config.model, VOCABULARY, VOCABULARY, max_length=257)
        turns[name]["parameters"] = parameter_count(model)
        turns[name]["command"] = " ".join((recipe, *settings))
    return {"systems": turns}


def quality(record: Record) -> str:
    """Format the scores as Markdown."""
    measured = record.measurements
    return (
        "## Multi30k English-German\n\n"
        "`convolutional-small` is ConvS2S with attention in every decoder layer, trained on the "
        f"same batches as [`recurrent-small`](recurrent.md). {score_sentence(measured)}\n\n"
        f"{validation_table(measured['validations'])}{note(record)}"
    )


def speed(record: Record) -> str:
    """Lay out the speeds, relative to the Transformer's speed in the same turn."""
    return f"## Speed compared with a Transformer of equal size\n\n{speed_table(record)}"


def speed_table(record: Record) -> str:
    """Lay out the speeds of systems, relative to the first system's speed in the same turn."""
    systems = record.measurements["systems"]
    first = next(iter(systems.values()))
    rows = [
        row
        | {"step": _times(row["train"], first["train"], "target tokens")}
        | {"search": _times(row["translate"], first["translate"], "sentences")}
        for row in with_names(systems)
    ]
    speeds = table(
        "model | weights | target tokens a second, training | times | share of the product rate "
        "| sentences a second, search | times | share",
        "{name} | {parameters:,} | {step[0]:,.0f} | {step[1]:.2f} | {step[2]:.0%} "
        "| {search[0]:,.0f} | {search[1]:.2f} | {search[2]:.0%}",
        rows,
    )
    commands = "\n".join(f"- {row['name']}: `{row['command']}`" for row in rows)
    return (
        "All models compute in fp32, with a vocabulary of 4,000. A training step has 1,024 "
        "tokens on each side, in sentences of about 25 tokens. A search translates 32 sentences "
        "at once with beam 4; each has 16 source tokens and 20 target tokens. “Times” is the "
        "speed divided by that of the first row in the same turn (median). A share is the rate "
        "of operations on real tokens, divided by the rate of large matrix products (the product "
        f"rate).\n\n{speeds}\n\n" + fold("Recipes and settings", [commands]) + note(record)
    )


def _times(
    turns: list[dict[str, Any]], first: list[dict[str, Any]], unit: str
) -> tuple[float, ...]:
    """Compute median rate, ratio to the first system, and share of the product rate."""
    rates, others = ([turn["per_second"][unit] for turn in side] for side in (turns, first))
    ratios = [rate / rival for rate, rival in zip(rates, others, strict=True)]
    share = median_high(turn["share"] for turn in turns)
    return median_high(rates), median_high(ratios), share


PAGE = ResultPage(
    "families",
    "Families compared with the Transformer",
    {"families-quality": quality, "families-speed": speed},
)


if __name__ == "__main__":
    main()
