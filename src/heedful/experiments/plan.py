"""
The plan of a table: before training, a time budget is converted into steps for each system.

The training rate of each system is measured once for all seeds, as in `heedful bench train`. The
measured sentences are random and have the mean length of the text's sentences; the systems take
turns. The plan is saved, so the run can be repeated on any machine. A repeated run takes the
numbers of steps and threads from the plan and measures no rates.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from heedful.config.load import load_config
from heedful.config.schema import RunConfig
from heedful.errors import SettingError
from heedful.experiments.budget import SECONDS_OF_VALIDATION, say_time, share_budget
from heedful.experiments.corpus import TableCorpus
from heedful.experiments.estimate import is_positive
from heedful.experiments.page import capital
from heedful.experiments.rates import TimedSettings, conditions, rates_in_turns
from heedful.experiments.record import read_json, write_json
from heedful.experiments.system import TableSystem, count_parameters
from heedful.experiments.task import Equal, TableTask
from heedful.kernels.api import resolve_precision
from heedful.machine.devices import resolve_device
from heedful.preparation.prepare import prepare
from heedful.preparation.prepared_text import PreparedText

Say = Callable[[str], None]

VALIDATIONS = 8
_BETWEEN_VALIDATIONS = 10.0
"""Minimum seconds of training between validations, if the task does not set their number."""
_MEASURING = 4
"""Minimum seconds to measure the rate of a system."""
RATES = "rates.json"
"""The file of measured rates, in tokens per second, by the name of a system."""


@dataclass(frozen=True)
class PlannedSystem:
    """A system with its number of steps."""

    name: str
    settings: tuple[str, ...]
    """All settings that differ from the recipe."""
    data: str
    """Folder of its encoded text."""
    steps: int
    tokens_per_second: float
    """Measured tokens per second of training, counted on the side that has more of them."""
    batch_tokens: int
    parameters: int
    """Number of the model's weights if the vocabulary has its configured size."""

    @property
    def seconds(self) -> float:
        """Planned training time: steps at the measured rate."""
        return self.steps * self.batch_tokens / self.tokens_per_second


@dataclass(frozen=True)
class Plan:
    """The systems to train, with their steps."""

    recipe: str
    corpus: str
    """Names and sizes of the text's files."""
    budget: float
    """Time budget in seconds."""
    equal: Equal
    """Whether all systems get equal time or equal steps."""
    threads: int
    systems: tuple[PlannedSystem, ...]
    left_out: tuple[str, ...] = ()
    """Names of the systems that would get too few steps."""

    def in_folders(self, folders: Mapping[str, str]) -> "Plan":
        """Return the plan with other text folders for some systems."""
        systems = tuple(
            replace(system, data=folders.get(system.name, system.data)) for system in self.systems
        )
        return replace(self, systems=systems)

    def write(self, path: Path) -> None:
        """Write the plan as JSON."""
        write_json(path, asdict(self))

    @classmethod
    def read(cls, path: Path) -> "Plan":
        """Read a plan; raises `RunFolderError` if the file is not a plan."""
        return read_json(path, "be the plan of a table", cls.of)

    @classmethod
    def of(cls, plain: dict[str, Any]) -> "Plan":
        """Read the plan from JSON values."""
        systems = tuple(
            PlannedSystem(**system | {"settings": tuple(system["settings"])})
            for system in plain["systems"]
        )
        return cls(**plain | {"systems": systems, "left_out": tuple(plain["left_out"])})


def make_plan(task: TableTask, budget: float, threads: int, say: Say) -> Plan:
    """Encode the text, measure the rate of every system, and share the budget."""
    began = time.monotonic()
    trained, out = task.trained, task.out
    rates = _known_rates(out / RATES, threads)
    unknown = {
        _but_for_seed(system) for system in trained if system.name not in rates and not system.after
    }
    if budget < _MEASURING * len(unknown):
        raise SettingError(
            f"--budget must be enough to measure the rates of {len(unknown)} systems and to train "
            f"them, but is {say_time(budget / task.share)}; give at least "
            f"{(2 * _MEASURING * len(unknown) / 60 + 1) / task.share:.0f}m."
        )
    encoded = encode_all(task)
    rates = _all_rates(task, encoded, rates, threads)
    write_rates(out / RATES, rates, threads)
    for system in trained:
        rate = rates[system.name]
        say(capital(f"{system.title}: {rate:,.0f} tokens per second in training"))
    batches = {name: system.config.train.batch_tokens for name, system in encoded.items()}
    seconds = {name: tokens / rates[name] for name, tokens in batches.items()}
    steps = share_budget(task, seconds, budget, time.monotonic() - began)
    counted = {name: count * seconds[name] for name, count in steps.items()}
    fewest = min(counted.values())  # systems with equal steps validate at the same steps
    planned = [
        PlannedSystem(
            name,
            (
                *encoded[name].settings,
                *_lengths_of(
                    count, fewest if task.equal == "steps" else counted[name], task.validations
                ),
                _precision(encoded[name].config),
                *_guidance(encoded[name].config, count),
            ),
            encoded[name].folder,
            count,
            rates[name],
            batches[name],
            count_parameters(encoded[name].config),
        )
        for name, count in steps.items()
    ]
    left_out = tuple(system.name for system in trained if system.name not in steps)
    text = describe(task.corpus)
    return Plan(task.recipe, text, budget, task.equal, threads, tuple(planned), left_out)


def _but_for_seed(system: TableSystem) -> tuple[str, ...]:
    """Return the settings of a system without its seed; they determine its training rate."""
    return tuple(line for line in system.settings if not line.startswith("train.seed="))


class EncodedSystem(NamedTuple):
    """A system and its encoded text."""

    settings: tuple[str, ...]
    """All settings that differ from the recipe."""
    config: RunConfig
    folder: str
    """Folder of the text, relative to the table's folder."""


def encode_all(task: TableTask) -> dict[str, EncodedSystem]:
    """Learn subwords and encode the text, once for all systems with the same encoding."""
    corpus = task.corpus
    folders: dict[str, str] = {}
    encoded = {}
    for system in task.trained:
        settings = (*task.common, *system.settings)
        config = load_config(task.recipe, settings)
        key = json.dumps(config.to_dict()["data"], sort_keys=True)
        if key not in folders:
            folders[key] = f"text/encoded-{len(folders) + 1}"
            prepare(
                task.recipe,
                out=task.out / folders[key],
                source=corpus.file("train", corpus.source),
                target=corpus.file("train", corpus.target),
                settings=settings,
            )
        encoded[system.name] = EncodedSystem(settings, config, folders[key])
    return encoded


def write_rates(path: Path, rates: Mapping[str, float], threads: int) -> None:
    """Write the rates of systems, and the conditions in which they were measured."""
    write_json(path, {"conditions": conditions(threads), "rates": dict(rates)})


def _known_rates(path: Path, threads: int) -> dict[str, float]:
    """
    Read rates that were measured earlier in the same conditions.

    Raises `RunFolderError` if the file has no rates.
    """

    def parse(known: dict[str, Any]) -> dict[str, float]:
        # files of earlier commits have no conditions
        if known.get("conditions") != conditions(threads):
            return {}
        rates: dict[str, float] = known["rates"]
        if wrong := [name for name, rate in rates.items() if not is_positive(rate)]:
            raise ValueError(f"the rate of {wrong[0]} is {rates[wrong[0]]!r}")
        return rates

    content = "contain the rates of systems, in tokens per second"
    return read_json(path, content, parse) if path.exists() else {}


def describe(corpus: TableCorpus) -> str:
    """List the names and sizes of the corpus files, by which a plan identifies its text."""
    files = [
        corpus.file(part, language)
        for part in ("train", "valid", "test")
        for language in (corpus.source, corpus.target)
    ]
    return " ".join(f"{file.name}:{file.stat().st_size}" for file in files)


def _all_rates(
    task: TableTask,
    encoded: Mapping[str, EncodedSystem],
    known: Mapping[str, float],
    threads: int,
) -> dict[str, float]:
    """Measure unknown rates in tokens per second, once for all seeds of a system."""
    alike = {
        _but_for_seed(system): known[system.name]
        for system in task.trained
        if system.name in known and not system.after
    }
    unknown = {
        _but_for_seed(system): encoded[system.name]
        for system in task.trained
        if not system.after and _but_for_seed(system) not in alike
    }
    timed = [
        TimedSettings(system.settings, *_mean_lengths(task.out / system.folder))
        for system in unknown.values()
    ]
    measured = rates_in_turns(task.recipe, timed, threads)
    alike |= dict(zip(unknown, measured, strict=True))
    rates = dict(known)
    for system in task.trained:
        if system.after:
            rates[system.name] = rates[system.after] / system.slowdown
        else:
            rates[system.name] = alike[_but_for_seed(system)]
    return rates


def _precision(config: RunConfig) -> str:
    """Return the measured precision as a setting; `auto` may choose another on other machines."""
    chosen = resolve_precision(config.train.precision, resolve_device(config.train.device))
    return f"train.precision={chosen}"


def _lengths_of(steps: int, seconds: float, validations: int | None) -> tuple[str, ...]:
    """Return settings that fit schedule, checkpoints and validations to the number of steps."""
    least, most, between = 2, VALIDATIONS, _BETWEEN_VALIDATIONS
    if validations is not None:  # at least one after each quarter of the training
        least, most, between = min(4, validations), validations, SECONDS_OF_VALIDATION
    count = max(least, min(most, int(seconds / between)))
    return (
        f"train.steps={steps}",
        f"train.warmup={min(300, max(1, steps // 8))}",
        f"train.validate_steps={-(-steps // count)}",  # there is also a validation at the end
        f"train.checkpoint_steps={max(1, steps // 40)}",
        "train.checkpoint_minutes=none",
        "train.keep_last=10",
    )


def _guidance(config: RunConfig, steps: int) -> tuple[str, ...]:
    """Return settings that let guided attention fade out in the first half of the training."""
    is_guided = config.train.guided_attention
    return (f"train.guided_steps={max(1, steps // 2)}",) if is_guided else ()


def _mean_lengths(folder: Path) -> tuple[int, int]:
    """Read the mean numbers of source and target tokens per sentence, including end symbols."""
    (pairs,) = PreparedText.open(folder).open_pairs()
    lengths = pairs.source_lengths.mean(), pairs.target_lengths.mean()
    source, target = (max(2, round(float(length)) + 1) for length in lengths)
    return source, target
