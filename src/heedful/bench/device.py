"""
`heedful bench device`: GPU utilization, measured in parts that each fit into a short session.

Each part writes its record after each measurement, so an interruption loses at most one
measurement. A failed measurement is recorded with its error message, and the next measurement
follows; failed parts are treated in the same way. Each measurement of a system runs in its own
process.
"""

import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from heedful._version import __version__
from heedful.bench.random_run import make_random_run, random_lines
from heedful.bench.systems import (
    OURS,
    Say,
    System,
    find_systems,
    own_system,
    peer_steps_at_once,
)
from heedful.bench.train import needed_work
from heedful.bench.translate import BenchText, write_request
from heedful.config.load import load_config
from heedful.errors import HeedfulError, SettingError
from heedful.experiments.record import Record, describe_this_machine
from heedful.experiments.timed_training import training_request
from heedful.experiments.work import shape_of, synthetic_pairs
from heedful.kernels.api import measured_rates, resolve_precision
from heedful.machine.devices import resolve_device, resolve_threads
from heedful.model.contracts import search_flops
from heedful.search.settings import PEERS_SEARCH
from heedful.training.device.optimizations import Optimizations

ALL_ON = "all on"
"""Name of the choice in which all optimizations of a step are on, as in training."""
DETERMINISTIC = "all on, deterministic"
"""Name of a step with all optimizations and `train.deterministic`."""
PLAIN = "without graphs"
"""Name of a search without CUDA graphs: Python launches the kernels one by one."""

_OPTIMIZATIONS = tuple(field.name for field in fields(Optimizations))
# The optimizations that are off in each choice. Compiled layers and CUDA graphs need unpadded
# batches in buffers of a fixed size, so `unpadded` is never off alone.
OPTIMIZATIONS_OFF: dict[str, tuple[str, ...]] = {
    ALL_ON: (),
    "all off": _OPTIMIZATIONS,
    "graphs off": ("graphs",),
    "compilation off": ("compiled",),
    "preparation off": ("ahead",),
    "unpadded only": ("compiled", "graphs", "ahead"),
}
_ROUNDS = 3
"""Number of measurements of each system in a comparison; fewer if the time limit is reached."""
_SECONDS_LEFT = 20.0
"""If fewer seconds are left, no further measurement begins."""
_LENGTH, _TOKENS = 25, 24
"""Mean number of tokens per sentence, end symbol included, and length of each translation."""


class Shape(NamedTuple):
    """A model and the number of tokens in its training step."""

    recipe: str
    tokens: int
    vocabulary: int


@dataclass(frozen=True)
class Size:
    """The amount of work of each part."""

    steps: Mapping[str, Shape]
    """The step to measure, by the name of its part."""
    check: Shape
    """The model and step whose results are compared with the CPU's."""
    searches: Mapping[int, int]
    """The number of lines to translate, by the number of sentences per batch."""
    rates: Mapping[str, int]
    """Sizes for `heedful.bench.device_checks.measure_rates`."""
    repeats: int = 3
    """Number of timings of each measurement; their median is used."""


SIZES = {
    "full": Size(
        {
            "base": Shape("paper-base", 25_000, 37_000),
            "big": Shape("paper-big", 25_000, 37_000),
            "small": Shape("small", 8_000, 8_000),
        },
        Shape("small", 2_000, 8_000),
        {128: 1024, 32: 256, 1: 24},
        {"size": 8192, "bytes": 1 << 31, "launches": 1000},
    ),
    "tiny": Size(
        {name: Shape("tiny", tokens, 304) for name, tokens in (("base", 300), ("small", 100))},
        Shape("tiny", 200, 304),
        {4: 8, 1: 2},
        {"size": 128, "bytes": 1 << 20, "launches": 10},
        repeats=1,
    ),
}


@dataclass
class Visit:
    """The resources of one run of `heedful bench device`."""

    device: str
    precision: str
    threads: int
    size: Size
    peers: Path | None
    """Folder of the other toolkits (peers); None for no other toolkits."""
    peers_python: str | None
    """Python interpreter for peers without their own environment."""
    say: Say
    ends: float = 0.0
    """Time of the monotonic clock at which the current part must end."""

    @property
    def seconds_left(self) -> float:
        """Seconds until the current part must end."""
        return self.ends - time.monotonic()

    @property
    def machine(self) -> dict[str, Any]:
        """Device and threads, for a request."""
        return {"device": self.device, "threads": self.threads}

    def measure(
        self, system: System, request: Mapping[str, Any], facts: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Run a measurement; return `facts` with its results or the reason for its failure."""
        title = ", ".join(map(str, facts.values()))
        if self.seconds_left < _SECONDS_LEFT:
            return {**facts, "failed": "not measured: this part had too little time left"}
        self.say(f"{title}, {self.seconds_left:,.0f} seconds left")
        try:
            return {**facts, **system.run(request, self.seconds_left)}
        except HeedfulError as error:
            return {**facts, "failed": str(error)}


def bench_device(
    out: str | Path,
    parts: Sequence[str] = (),
    *,
    device: str = "auto",
    precision: str = "auto",
    threads: int = 0,
    size: str = "full",
    minutes: float = 8.5,
    peers: Path | None = None,
    peers_python: str | None = None,
    say: Say,
) -> list[Record]:
    """
    Measure the parts, and write a record of each to the folder `out`.

    `parts`: names of parts, or the first words of their names; all parts if empty. `minutes`: time
    limit of each part; measurements for which no time is left are recorded as not measured.

    Returns the records. Raises `SettingError` for an unknown part or size.
    """
    if size not in SIZES:
        raise SettingError(f"a size must be {' or '.join(SIZES)}, but is {size!r}.")
    chosen = choose_parts(parts, SIZES[size])
    place = resolve_device(device)
    visit = Visit(
        str(place),
        resolve_precision(precision, place),
        resolve_threads(threads),
        SIZES[size],
        peers,
        peers_python,
        say,
    )
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    records = []
    for name, part in chosen.items():
        visit.ends = time.monotonic() + 60 * minutes
        path = folder / f"device-{name}.json"
        records.append(_record_part(name, part(visit), visit, size, path))
    return records


def choose_parts(names: Sequence[str], size: Size) -> dict[str, Callable[[Visit], Iterator[Any]]]:
    """Find the parts with these names or first words; without names, return all parts."""
    parts: dict[str, Callable[[Visit], Iterator[Any]]] = {
        "correct": _correct,
        "rates": _rates,
        **{f"step-{name}": partial(_step, name) for name in size.steps},
        "search": _search,
        "peers-train": _peers_train,
        "peers-search": _peers_search,
    }
    for name in names:
        if not any(_names(name, part) for part in parts):
            raise SettingError(f"a part must be one of {', '.join(parts)}, but is {name!r}.")
    return {
        part: work
        for part, work in parts.items()
        if not names or any(_names(name, part) for name in names)
    }


def _names(name: str, part: str) -> bool:
    """Tell whether a name selects a part; ``step`` selects ``step-base``, too."""
    return part == name or part.startswith(f"{name}-")


def _record_part(
    name: str, entries: Iterator[dict[str, Any]], visit: Visit, size: str, path: Path
) -> Record:
    """Measure a part, and write its record after each measurement."""
    started = time.monotonic()
    command = ["heedful", "bench", "device", "--out", "OUT", "--part", name]
    command += [] if size == "full" else ["--size", size]
    measured: dict[str, Any] = {
        "part": name,
        "size": size,
        "versions": {"heedful": __version__, "torch": torch.__version__},
        **visit.machine,
        "precision": visit.precision,
        "entries": [],
    }
    record = Record("", describe_this_machine(), measured, [shlex.join(command)])

    def write() -> None:
        measured["seconds"] = round(time.monotonic() - started, 1)
        record.write(path)

    visit.say(f"part {name}")
    try:
        measured["product_gflops"] = measured_rates(torch.device(visit.device), 0.3)
        write()
        for entry in entries:
            measured["entries"].append(entry)
            write()
    except (HeedfulError, RuntimeError, ValueError, OSError, torch.OutOfMemoryError) as error:
        visit.say(f"part {name} failed: {error}")
        measured["failed"] = f"{type(error).__name__}: {error}"
    write()
    return record


# The parts: each yields a record of every measurement.


def _correct(visit: Visit) -> Iterator[dict[str, Any]]:
    """Compare the results of a first step and of searches with the CPU's, in both precisions."""
    shape = visit.size.check
    request = _step_request(visit, shape, ("model.dropout=0.0",))
    for precision in ("fp32", "bf16"):
        request["task"] = "correct"
        for name, off in OPTIMIZATIONS_OFF.items():
            if off in ((), _OPTIMIZATIONS) or precision == "bf16":
                facts = {"what": "step", "precision": precision, "levers": name}
                step_request = {**request, "levers": _switches(off)}
                yield visit.measure(own_system(precision), step_request, facts)
    with tempfile.TemporaryDirectory() as folder:
        run = make_random_run(Path(folder), load_config(shape.recipe), shape.vocabulary)
        lines = random_lines(shape.vocabulary, _LENGTH, max(visit.size.searches))
        request = {"task": "correct", "run": str(run.folder.path), "lines": lines, **visit.machine}
        for precision in ("fp32", "bf16"):
            for system in _own_searches(precision):
                facts = {"what": "search", "precision": precision, "kernels": system.variant}
                yield visit.measure(system, request, facts)


def _rates(visit: Visit) -> Iterator[dict[str, Any]]:
    """Measure the peak rates of the device."""
    request = {"task": "rates", **visit.size.rates, **visit.machine}
    yield visit.measure(own_system(visit.precision), request, {"what": "rates"})


def _step(name: str, visit: Visit) -> Iterator[dict[str, Any]]:
    """Measure the step of a shape with each choice of optimizations, and with equal bytes."""
    shape = visit.size.steps[name]
    request = _step_request(visit, shape)
    work = _step_work(shape, request)
    for choice, off in OPTIMIZATIONS_OFF.items():
        facts = {"recipe": shape.recipe, "levers": choice}
        step_request = {**request, "levers": _switches(off)}
        yield visit.measure(own_system(visit.precision), step_request, facts) | work
    request = _step_request(visit, shape, ("train.deterministic=true",))
    facts = {"recipe": shape.recipe, "levers": DETERMINISTIC}
    step_request = {**request, "levers": _switches(())}
    yield visit.measure(own_system(visit.precision), step_request, facts) | work


def _search(visit: Visit) -> Iterator[dict[str, Any]]:
    """Measure searches with each batch size, with and without CUDA graphs."""
    for batch, request, work in _search_requests(visit):
        for system in _own_searches(visit.precision):
            facts = {"batch": batch, "kernels": system.variant}
            yield visit.measure(system, request, facts) | work


def _peers_train(visit: Visit) -> Iterator[dict[str, Any]]:
    """Compare the step of the first shape with the steps of other toolkits."""
    shape = next(iter(visit.size.steps.values()))
    request = _step_request(visit, shape)
    work = _step_work(shape, request)
    request["steps_at_once"] = peer_steps_at_once(visit.device)
    yield from _in_turns(visit, "train", request, {"recipe": shape.recipe} | work)


def _peers_search(visit: Visit) -> Iterator[dict[str, Any]]:
    """Compare searches with those of other toolkits."""
    for batch, request, work in _search_requests(visit):
        yield from _in_turns(visit, "translate", request, {"batch": batch} | work)


def _in_turns(
    visit: Visit, task: str, request: Mapping[str, Any], work: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Measure heedful and the peers in turns; a system that fails is not measured again."""
    field = find_systems(
        task, visit.precision, visit.peers, (), True, (), visit.peers_python, visit.device
    )
    for note in field.notes:
        yield {**work, "who": note.split()[0], "failed": note}
    left = [*field.systems]
    for number in range(_ROUNDS):
        for system in [*left]:
            facts = {"who": system.title, "round": number + 1}
            entry = visit.measure(system, request, facts)
            if "failed" in entry:
                left.remove(system)
            yield {**entry, **work}


def _own_searches(precision: str) -> Iterator[System]:
    """List heedful with and without CUDA graphs, as two systems."""
    ours = own_system(precision)
    yield System(OURS, ours.command, "with graphs", precision)
    yield System(OURS, ours.command, PLAIN, precision, (("HEEDFUL_KERNELS", "plain"),))


def _switches(off: Sequence[str]) -> dict[str, bool]:
    """Return, for each optimization of a step, whether it is on."""
    return {name: name not in off for name in _OPTIMIZATIONS}


def _step_request(visit: Visit, shape: Shape, settings: Sequence[str] = ()) -> dict[str, Any]:
    """Build the request for measuring a step."""
    config = load_config(shape.recipe, settings)
    pairs = synthetic_pairs(shape.vocabulary, _LENGTH, _LENGTH, shape.tokens)
    return {
        "task": "train",
        **training_request(config, shape.vocabulary, *pairs),
        "model": shape_of(config, shape.vocabulary),
        "label_smoothing": config.train.label_smoothing,
        "steps": visit.size.repeats,
        **visit.machine,
    }


def _step_work(shape: Shape, request: Mapping[str, Any]) -> dict[str, Any]:
    """Count the operations and tokens of a step, without padding."""
    sides = request["sources"], request["targets"]
    flops, counts = needed_work(load_config(shape.recipe), shape.vocabulary, *sides)
    return {"flops": flops, "counts": counts}


def _search_requests(visit: Visit) -> Iterator[tuple[int, dict[str, Any], dict[str, Any]]]:
    """Describe searches with random weights: batch size, request, and work of one pass."""
    shape = next(iter(visit.size.steps.values()))
    options = replace(PEERS_SEARCH, max_length=_TOKENS)
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        (place / "run").mkdir()
        run = make_random_run(place / "run", load_config(shape.recipe), shape.vocabulary)
        with torch.device("meta"):
            model = run.build()
        for batch, count in visit.size.searches.items():
            lines = random_lines(shape.vocabulary, _LENGTH, count)
            folder = place / f"batch-{batch}"
            folder.mkdir()
            text = BenchText(batch=batch, search=options, repeats=visit.size.repeats)
            checkpoint = run.checkpoint_folder()
            request = write_request(run, "default", checkpoint, lines, text, folder)
            source = [len(line.split()) + 1 for line in lines]
            flops = search_flops(model, source, [_TOKENS + 1] * count, options.size)
            counts = {"sentences": count, "tokens": count * _TOKENS}
            yield batch, request | visit.machine, {"flops": float(flops), "counts": counts}
