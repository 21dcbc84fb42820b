"""`heedful bench`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from heedful.cli.options import (
    Device,
    Precision,
    Recipe,
    Threads,
    Weights,
    check_stop,
    command_group,
    refuse,
    run_argument,
    say,
    with_flags,
)
from heedful.cli.plugin_option import with_plugins
from heedful.cli.terminal_text import echo_json
from heedful.search.settings import PEERS_SEARCH, SearchOptions

if TYPE_CHECKING:
    from heedful.bench.measurement import SpeedReport
    from heedful.bench.train import Conditions

_HERE = Path("benchmarks/peers")

app = command_group("bench", "Measure speed and memory, of other installed toolkits too.")

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting: model.d_model=256."),
]
Vocabulary = Annotated[
    int | None, typer.Option(min=8, help="Vocabulary size of both sides; by default the recipe's.")
]
Peers = Annotated[
    Path,
    typer.Option(help="Folder with other toolkits: DIR/NAME/bench.py and DIR/NAME/.venv."),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Measure only this system: heedful, marian, “marian fp32”; may be repeated.",
    ),
]
Rounds = Annotated[
    int, typer.Option(min=1, help="Measurements of each system, in turns, each in a new process.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, with every repetition.")]


@app.command()
@with_plugins
def train(
    recipe: Recipe = "small",
    set_: Settings = None,
    source_length: Annotated[
        int, typer.Option(min=2, help="Mean tokens of a source sentence, end symbol included.")
    ] = 25,
    target_length: Annotated[
        int, typer.Option(min=2, help="Mean tokens of a target sentence.")
    ] = 25,
    batch_tokens: Annotated[int, typer.Option(min=2, help="Tokens per step, on each side.")] = 2000,
    vocabulary: Vocabulary = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps to time, after one warm-up step.")] = 5,
    profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="Print how heedful's time is divided between the parts of a step, and the time "
            "of its matrix products alone.",
        ),
    ] = False,
    rounds: Rounds = 1,
    peers: Peers = _HERE,
    only: Only = None,
    as_json: Json = False,
    device: Device = "auto",
    precision: Precision = "auto",
    threads: Threads = 0,
) -> None:
    """
    Time the training step: batch, forward, loss, backward, update.

    Pairs are random; their lengths differ from the mean by at most a fifth. “Share of products” is
    the share of the step's time that the matrix products for real tokens would take alone, at the
    rate just measured. With --precision bf16 or fp32 all systems use that precision; by default
    each is measured in every precision that it has.
    """
    from heedful.bench.train import bench_train

    report = bench_train(
        recipe,
        set_ or (),
        source_length=source_length,
        target_length=target_length,
        batch_tokens=batch_tokens,
        vocabulary=vocabulary,
        steps=steps,
        profile=profile,
        conditions=_conditions(device, precision, threads, peers, only, rounds),
        say=say,
    )
    _print(report, as_json)


@app.command()
@with_plugins
@with_flags(
    "search", PEERS_SEARCH, batch=("beam",), repeats=("length_penalty", "max_length", "stop")
)
def translate(
    search: dict[str, Any],
    run: Annotated[
        Path | None,
        run_argument("A run folder; without one the weights are random."),
    ] = None,
    input: Annotated[Path | None, typer.Option(help="Text to translate with RUN.")] = None,
    reference: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Reference translation; may be repeated."),
    ] = None,
    lines: Annotated[
        int | None, typer.Option(min=1, help="Number of lines to translate; by default all.")
    ] = None,
    weights: Weights = "default",
    recipe: Annotated[str, typer.Option(help="Without RUN: recipe of the random model.")] = "small",
    set_: Settings = None,
    source_length: Annotated[
        int, typer.Option(min=2, help="Without RUN: mean tokens of a line.")
    ] = 25,
    tokens: Annotated[
        int,
        typer.Option(min=1, help="Without RUN: exact number of tokens of every translation."),
    ] = 24,
    vocabulary: Vocabulary = None,
    batch: Annotated[
        int | None,
        typer.Option(
            min=1, help="Sentences per batch; by default the batches of heedful translate."
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Passes over the text to time.")] = 5,
    profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="Print how heedful's time is divided between the parts of the model, in a "
            "single-threaded search, and the time of matrix products alone.",
        ),
    ] = False,
    rounds: Rounds = 1,
    peers: Peers = _HERE,
    only: Only = None,
    as_json: Json = False,
    device: Device = "auto",
    precision: Precision = "auto",
    threads: Threads = 0,
) -> None:
    """
    Measure how fast lines of text are translated.

    All toolkits use the weights of RUN, and --stop decides when heedful's search stops. Without
    RUN, weights and lines are random, and every translation has exactly --tokens tokens. Prints for
    each toolkit: how many translations are equal to heedful's, and BLEU if there is a --reference.
    With --precision bf16 or fp32 all toolkits use that precision; otherwise each is measured in all
    of its precisions, heedful also in 8 bits.
    """
    check_stop(search["stop"])
    from heedful.bench.translate import BenchText, bench_random, bench_trained

    text = BenchText(
        input,
        tuple(reference or ()),
        lines,
        batch,
        SearchOptions(**search),
        repeats,
        profile,
    )
    conditions = _conditions(device, precision, threads, peers, only, rounds)
    if run is not None:
        report = bench_trained(run, text, weights=weights, conditions=conditions, say=say)
    else:
        report = bench_random(
            recipe,
            set_ or (),
            text,
            tokens=tokens,
            source_length=source_length,
            vocabulary=vocabulary,
            conditions=conditions,
            say=say,
        )
    _print(report, as_json)


@app.command()
@with_plugins
def data(
    recipe: Recipe = "small",
    set_: Settings = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="Source text; by default a built-in grammar generates it."
        ),
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Target text, aligned line by line.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Measurements of each stage.")] = 5,
    as_json: Json = False,
    threads: Threads = 0,
) -> None:
    """Time each stage from text to padded batches."""
    from heedful.bench.data import bench_data

    report = bench_data(
        recipe,
        set_ or (),
        source=source or (),
        target=target or (),
        repeats=repeats,
        threads=threads,
    )
    _print(report, as_json)


@app.command()
def device(
    out: Annotated[Path, typer.Option(help="Folder for the records, one file per part.")],
    part: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Measure only this part: correct, rates, step-base, step-big, step-small, search, "
            "peers-train, peers-search; step or peers for all parts that begin so. May be "
            "repeated.",
        ),
    ] = None,
    size: Annotated[
        Literal["full", "tiny"], typer.Option(help="full, or tiny to rehearse on a processor.")
    ] = "full",
    minutes: Annotated[
        float,
        typer.Option(min=0.1, help="Minutes after which a part begins no further measurement."),
    ] = 8.5,
    peers: Peers = _HERE,
    peers_python: Annotated[
        str | None,
        typer.Option(
            metavar="PROGRAM", help="Python interpreter for toolkits without DIR/NAME/.venv."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the records.")] = False,
    device: Device = "auto",
    precision: Precision = "auto",
    threads: Threads = 0,
) -> None:
    """
    Show whether a GPU is used well, part by part.

    First the device's results are compared with the processor's. Then the device's peak rates are
    measured, then training step and search with each optimization on and off, then other toolkits.
    Each part writes its record at once and takes less than nine minutes; a part that fails is
    recorded, and the next one follows.
    """
    _check_peers(peers)
    from heedful.bench.device import bench_device
    from heedful.bench.device_report import device_lines

    records = bench_device(
        out,
        part or (),
        device=device,
        precision=precision,
        threads=threads,
        size=size,
        minutes=minutes,
        peers=peers,
        peers_python=peers_python,
        say=say,
    )
    if as_json:
        echo_json([asdict(record) for record in records])
        return
    for line in device_lines([record.measurements for record in records]):
        typer.echo(line)


def _conditions(
    device: str,
    precision: str,
    threads: int,
    peers: Path,
    only: list[str] | None,
    rounds: int,
) -> "Conditions":
    """Collect the conditions of a measurement."""
    _check_peers(peers)
    from heedful.bench.train import Conditions

    return Conditions(device, precision, threads, peers, tuple(only or ()), rounds)


def _check_peers(peers: Path) -> None:
    """Refuse a folder of peers that does not exist."""
    if peers != _HERE and not peers.is_dir():
        refuse("--peers", f"must be a folder, but {peers} is not one.")


def _print(report: "SpeedReport", as_json: bool) -> None:
    """Print a report as JSON or as lines of text."""
    if as_json:
        echo_json(report.to_dict())
        return
    for line in report.lines():
        typer.echo(line)
