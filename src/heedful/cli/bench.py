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

app = command_group("bench", "Measure the speed of heedful and other installed toolkits.")

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting: model.d_model=256."),
]
Vocabulary = Annotated[
    int | None,
    typer.Option(min=8, help="Vocabulary size of a random model; by default the recipe's."),
]
Peers = Annotated[
    Path,
    typer.Option(
        help="Folder of other toolkits; the subfolder of each toolkit contains bench.py and .venv."
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Measure only this system, such as heedful, marian or “marian fp32”; may be repeated.",
    ),
]
Rounds = Annotated[
    int,
    typer.Option(
        min=1,
        help="Number of measurements of each system; systems take turns, and each measurement runs "
        "in a new process.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON with the results of every repetition.")
]


@app.command()
@with_plugins
def train(
    recipe: Recipe = "small",
    set_: Settings = None,
    source_length: Annotated[
        int,
        typer.Option(
            min=2, help="Mean number of tokens of a source sentence, including the end symbol."
        ),
    ] = 25,
    target_length: Annotated[
        int,
        typer.Option(
            min=2, help="Mean number of tokens of a target sentence, including the end symbol."
        ),
    ] = 25,
    batch_tokens: Annotated[
        int,
        typer.Option(min=2, help="Number of tokens per step on the side with longer sentences."),
    ] = 2000,
    vocabulary: Vocabulary = None,
    steps: Annotated[
        int, typer.Option(min=1, help="Number of steps to time, after one warm-up step.")
    ] = 5,
    profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="Print the share of CPU time that each operator takes in heedful's training "
            "step and, on a CPU, the time of the matrix products alone.",
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
    the share of the step's time that its matrix products would take without padding, at the
    measured rate of matrix products. With --precision bf16 or fp32, all systems use that precision;
    by default, other systems are measured in each of their precisions, and heedful in the precision
    that auto uses.
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
        run_argument("A run folder; without RUN, the weights are random."),
    ] = None,
    input: Annotated[Path | None, typer.Option(help="Text to translate with RUN.")] = None,
    reference: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="File of reference translations; may be repeated."),
    ] = None,
    lines: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of lines to translate; by default all, or 64 without RUN."
        ),
    ] = None,
    weights: Weights = "default",
    recipe: Annotated[str, typer.Option(help="Without RUN: recipe of the random model.")] = "small",
    set_: Settings = None,
    source_length: Annotated[
        int,
        typer.Option(
            min=2, help="Without RUN: mean number of tokens of a line, including the end symbol."
        ),
    ] = 25,
    tokens: Annotated[
        int,
        typer.Option(min=1, help="Without RUN: exact number of tokens of every translation."),
    ] = 24,
    vocabulary: Vocabulary = None,
    batch: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of sentences per batch; by default batches are formed as in heedful "
            "translate.",
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Number of timed passes over the text.")] = 5,
    profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="Print the share of time that a search with one thread spends in each part of "
            "the model. On a CPU, also print the time of the matrix products alone.",
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
    RUN, weights and lines are random, and every translation has exactly --tokens tokens. For each
    system, the command prints the share of translations that equal those of the first system, and
    BLEU if there is a --reference. With --precision bf16 or fp32, all toolkits use that precision.
    By default, other toolkits are measured in all of their precisions; heedful is measured in fp32,
    in bf16 if auto uses it, and in 8 bits on x86 CPUs.
    """
    check_stop(search["stop"])
    for option, value in (("--set", set_), ("--vocabulary", vocabulary)):
        if run is not None and value:
            refuse(
                option,
                "changes a random model, but RUN is a trained model; leave out RUN or the option.",
            )
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
        list[str] | None,
        typer.Option(metavar="FILE", help="Target text, aligned with the source line by line."),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(
            min=1, help="Number of measurements of each stage; subwords are learned only once."
        ),
    ] = 5,
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
            help="Measure only this part: correct, rates, step-base, step-big (not with --size "
            "tiny), step-small, search, peers-train, peers-search; step or peers for all "
            "parts with this prefix. May be repeated.",
        ),
    ] = None,
    size: Annotated[
        Literal["full", "tiny"],
        typer.Option(help="Size of the measurements: full, or tiny for a trial on a CPU."),
    ] = "full",
    minutes: Annotated[
        float,
        typer.Option(min=0.1, help="Time limit of each part in minutes."),
    ] = 8.5,
    peers: Peers = _HERE,
    peers_python: Annotated[
        str | None,
        typer.Option(metavar="PROGRAM", help="Python interpreter for toolkits without a .venv."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the records.")] = False,
    device: Device = "auto",
    precision: Precision = "auto",
    threads: Threads = 0,
) -> None:
    """
    Measure in several parts how well heedful uses a GPU.

    First, the results of the GPU are compared with those of the CPU. Then the peak rates of the GPU
    are measured. Next come the training step, with optimizations on and off, and the search, with
    and without CUDA graphs. Other toolkits come last. Each part writes its own record within the
    time limit of --minutes; a part that fails is recorded, and the next part follows.
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
    """Refuse a missing folder of other toolkits."""
    if peers != _HERE and not peers.is_dir():
        refuse("--peers", f"must be a folder, but {peers} is not one.")


def _print(report: "SpeedReport", as_json: bool) -> None:
    """Print a report as JSON or as lines of text."""
    if as_json:
        echo_json(report.to_dict())
        return
    for line in report.lines():
        typer.echo(line)
