"""Paths and the record of commands that all sections share."""

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.process import FinishedCommand, run_watched
from benchmarks.report import ROOT
from benchmarks.training import chosen, text_files

PEERS = ROOT / "benchmarks" / "peers"
# The model whose translation speed is measured: the paper's base model, trained on 29,000 pairs
# until translations end correctly, which takes half an hour in fp32 on two cores.
BIG = (
    "data.vocabulary_size=8000",
    "train.batch_tokens=1500",
    "train.steps=400",
    "train.warmup=150",
    "train.learning_rate_factor=0.15",
    "train.validate_steps=200",
    "train.checkpoint_minutes=5",
)


@dataclass
class Context:
    """Folders and options of the benchmark, and the commands so far."""

    data: Path
    """Folder of the corpora."""
    run: Path
    """A run of 6+6 layers and width 512 on Multi30k; it is trained if it does not exist."""
    work: Path
    """Folder for the runs of the sections."""
    quick: bool = False
    """Whether to try all measurements on tiny shapes, in seconds, instead of measuring."""
    rounds: int = 3
    """Number of turns of each system."""
    threads: int = 0
    commands: list[str] = field(default_factory=list)
    """Commands that were run, for the page."""

    def size(self, quick: Any, full: Any) -> Any:
        """Return `quick` if the measurements are only tried, else `full`."""
        return quick if self.quick else full

    def text(self, part: str, language: str) -> Path:
        """Return the path of a file of Multi30k."""
        return self.data / "multi30k" / "raw" / f"{part}.{language}.gz"

    def pair(self, part: str) -> list[Path]:
        """Return the paths of the English and German files of a part of Multi30k."""
        return [self.text(part, language) for language in ("en", "de")]

    def bench(self, *words: object, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Run `heedful bench` and read its result."""
        command = ("bench", *words, "--peers", PEERS, "--threads", self.threads, "--json")
        report: dict[str, Any] = json.loads(self.heedful(*command, environment=environment).output)
        return report

    def heedful(
        self, *words: object, environment: Mapping[str, str] | None = None
    ) -> FinishedCommand:
        """Run a command as a user would, timed from start to end."""
        return self.command(sys.executable, "-m", "heedful", *words, environment=environment)

    def command(
        self, *words: object, environment: Mapping[str, str] | None = None
    ) -> FinishedCommand:
        """Run any command, timed from start to end; `environment` has additional variables."""
        variables = [f"{name}={value}" for name, value in (environment or {}).items()]
        self.record([*variables, *map(str, words)])
        return run_watched(words, environment)

    def record(self, command: list[str]) -> None:
        """Record a command as one would type it in a shell."""
        line = shlex.join(command)
        program = shlex.join([sys.executable, "-m", "heedful"])
        for long, short in (
            (program, "heedful"),
            (sys.executable, "python"),
            (str(self.run), "RUN"),
            (str(self.data), "$HEEDFUL_DATA"),
            (str(self.work), "WORK"),
            (f"{ROOT}/", ""),
        ):
            line = line.replace(long, short)
        if line not in self.commands:
            self.commands.append(line)

    def trained(self) -> Path:
        """Return the run of 6+6 layers; train it first if it does not exist."""
        if not (self.run / "config.json").exists():
            files = text_files(self.pair("train"), self.pair("val"))
            settings = self.size((*BIG[:2], "train.steps=2"), BIG)
            self.heedful("train", "paper-base", *files, "--out", self.run, *chosen(settings))
        return self.run
