"""Paths and the record of commands that all sections share."""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.prepare import Watch
from benchmarks.report import ROOT

PEERS = ROOT / "benchmarks" / "peers"
MULTI30K = "multi30k/raw"


@dataclass
class Finished:
    """What a command took."""

    seconds: float
    peak: int
    """Peak bytes, children included."""
    output: str
    """Its standard output."""


@dataclass
class Context:
    """Folders of the benchmark, and the runs so far."""

    data: Path
    """The corpora."""
    run: Path
    """A run of 6+6 layers, width 512, trained on Multi30k; trained there if there is none."""
    work: Path
    """Folder for the runs of the sections."""
    quick: bool = False
    """Whether to try everything with shapes that take seconds, instead of measuring."""
    rounds: int = 3
    """Turns of each contender."""
    threads: int = 0
    commands: list[str] = field(default_factory=list)
    """What was run, for the page."""

    def text(self, part: str, language: str) -> Path:
        """Name a file of Multi30k."""
        return self.data / MULTI30K / f"{part}.{language}.gz"

    def bench(
        self, *arguments: object, environment: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Run `heedful bench` and read its result."""
        asked = ("bench", *arguments, "--peers", PEERS, "--threads", self.threads)
        return json.loads(self.heedful(*asked, "--json", environment=environment).output)

    def heedful(self, *arguments: object, environment: Mapping[str, str] | None = None) -> Finished:
        """Run a command as a user would, timed from start to end."""
        return self.command(sys.executable, "-m", "heedful", *arguments, environment=environment)

    def command(self, *arguments: object, environment: Mapping[str, str] | None = None) -> Finished:
        """Run any command, timed from start to end; `environment` has further variables."""
        command, more = [*map(str, arguments)], environment or {}
        self.record([*(f"{name}={value}" for name, value in more.items()), *command])
        started = time.monotonic()
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, encoding="utf-8", env=os.environ | more
        ) as process:
            watch = Watch(process.pid)
            watch.start()
            output, _ = process.communicate()
            seconds = time.monotonic() - started
            watch.join()
        if process.returncode:
            raise SystemExit(f"{shlex.join(command)} ended with {process.returncode}")
        return Finished(seconds, watch.peak, output)

    def record(self, command: list[str]) -> None:
        """Remember a command as anybody could type it."""
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
            valid = ("--valid-source", self.text("val", "en"))
            settings = [part for setting in BIG for part in ("--set", setting)]
            self.heedful(
                "train",
                "paper-base",
                *("--source", self.text("train", "en"), "--target", self.text("train", "de")),
                *valid,
                *("--valid-target", self.text("val", "de"), "--out", self.run),
                *(settings[:4] if self.quick else settings),
                *(("--set", "train.steps=2") if self.quick else ()),
            )
        return self.run


# The model that speed of translation is measured with: the paper's base on 29,000 pairs, trained so
# long that sentences end where they should (in fp32 half an hour on two cores).
BIG = (
    "data.vocabulary_size=8000",
    "train.batch_tokens=1500",
    "train.steps=400",
    "train.warmup=150",
    "train.learning_rate_factor=0.15",
    "train.validate_steps=200",
    "train.checkpoint_minutes=5",
)
