"""`heedful bench train`: the training step of heedful and of other toolkits."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.bench.measurement import SpeedMeasurement, SpeedReport
from heedful.bench.systems import Say, find_systems, peer_steps_at_once, run_in_turns
from heedful.config.load import load_config
from heedful.config.schema import RunConfig
from heedful.experiments.timed_training import training_request
from heedful.experiments.work import shape_of, step_flops, synthetic_pairs
from heedful.kernels.api import resolve_precision
from heedful.machine.devices import describe_machine, resolve_device, resolve_threads


@dataclass(frozen=True)
class Conditions:
    """Conditions of a measurement, the same for all systems."""

    device: str = "auto"
    precision: str = "auto"
    """heedful's precision; unless it is ``auto``, other toolkits must use the same precision."""
    threads: int = 0
    """Number of CPU threads; 0 for `OMP_NUM_THREADS` or, if it is not set, one per core."""
    peers: Path | None = None
    """Folder of the other toolkits (peers); None for no other toolkits."""
    only: tuple[str, ...] = ()
    """Names of the systems to measure; all if empty."""
    rounds: int = 1
    """Number of rounds in which all systems are measured."""

    def resolve(self) -> tuple[str, str, int]:
        """Fill in defaults for this machine, as training does."""
        device = resolve_device(self.device)
        threads = resolve_threads(self.threads)
        return str(device), resolve_precision(self.precision, device), threads


def bench_train(
    recipe: str,
    settings: Sequence[str] = (),
    *,
    source_length: int = 25,
    target_length: int = 25,
    batch_tokens: int = 2000,
    vocabulary: int | None = None,
    steps: int = 5,
    profile: bool = False,
    conditions: Conditions | None = None,
    say: Say,
) -> SpeedReport:
    """
    Time the training step of a recipe.

    `source_length, target_length`: mean tokens per sentence, the end symbol included. `vocabulary`:
    vocabulary size of both sides; the recipe's size if None.

    The token ids are random, so nothing is learned, but a step takes as much work as with real text
    of the same lengths.
    """
    conditions = conditions or Conditions()
    config = load_config(recipe, settings)
    vocabulary = vocabulary or config.data.vocabulary_size
    device, precision, threads = conditions.resolve()
    sources, targets = synthetic_pairs(vocabulary, source_length, target_length, batch_tokens)
    request: dict[str, Any] = {
        "task": "train",
        **training_request(config, vocabulary, sources, targets),
        "model": shape_of(config, vocabulary),
        "label_smoothing": config.train.label_smoothing,
        "steps": steps,
        "steps_at_once": peer_steps_at_once(device),
        "profile": profile,
        "device": device,
        "threads": threads,
    }
    forced = conditions.precision != "auto"
    field = find_systems(
        "train", precision, conditions.peers, conditions.only, forced, device=device
    )
    round_robin = run_in_turns(field, request, conditions.rounds, say)
    needed = needed_work(config, vocabulary, sources, targets)
    measurements = tuple(
        SpeedMeasurement(
            system.title,
            system.precision,
            tuple(answer["seconds"]),
            needed[1],
            needed[0],
            round_robin.rates.get(system.precision),
            answer["memory"],
            {
                "loss": answer["loss"],
                "versions": answer.get("versions", {}),
                **{name: answer[name] for name in ("products alone", "profile") if name in answer},
            },
        )
        for system, answer in round_robin.answers
    )
    what = {
        "recipe": config.recipe,
        "settings": " ".join(settings) or "as they are",
        "vocabulary": vocabulary,
        "pairs": len(sources),
        **needed[1],
        "steps": steps * conditions.rounds,
    }
    machine = {**describe_machine(), "threads": threads, "device": device}
    machine["product_gflops"] = round_robin.rates
    return SpeedReport(what, machine, measurements, (*field.notes, *round_robin.notes))


def needed_work(
    config: RunConfig, vocabulary: int, sources: list[list[int]], targets: list[list[int]]
) -> tuple[float, dict[str, int]]:
    """Count the operations and tokens of a step."""
    source = [len(row) + config.model.source_end for row in sources]
    target = [len(row) + 1 for row in targets]
    flops = step_flops(config, vocabulary, source, target)
    counts = {
        "source tokens": sum(source),
        "target tokens": sum(target),
        "tokens": sum(source) + sum(target),
    }
    return float(flops), counts
