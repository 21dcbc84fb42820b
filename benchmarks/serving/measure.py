"""Throughput and answers under load, memory over many requests, a stop under load."""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

from benchmarks.serving.clients import (
    ClientReply,
    SentRequest,
    ServerProcess,
    load,
    processor_seconds,
    serving,
)
from heedful.bench.random_run import make_random_run, random_lines
from heedful.config.schema import RunConfig

# What `model.*` is beside the paper's own sizes, and which texts are asked for.
SHAPES: dict[str, dict[str, object]] = {
    "base": {"search.max_length": "input+0"},
    "tiny": {
        "model.d_model": 32,
        "model.d_ff": 64,
        "model.heads": 4,
        "model.encoder_layers": 1,
        "model.decoder_layers": 1,
        "search.max_length": "6",
    },
}
WORDS = 20
SCORE = 1e-3
STEADY = 0.1
DIRECTION = "xx:yy="
# The same numbers on both sides, whatever the machine would choose for each alone.
ALIKE = ("--device", "cpu", "--precision", "fp32")


def make_run(folder: Path, shape: str, vocabulary: int) -> Path:
    """Write an untrained run, which translates up to its length limit."""
    folder.mkdir(parents=True)
    make_random_run(folder, RunConfig().with_settings(SHAPES[shape]), vocabulary)
    return folder


@dataclass(frozen=True)
class ServedTranslation:
    """The command line's translations of some lines."""

    texts: tuple[str, ...]
    scores: tuple[float, ...]
    seconds: float
    processor_seconds: float
    """From the first of them in to the last one out; by then it has loaded and warmed up."""

    @property
    def rate(self) -> float:
        """Lines a second."""
        return len(self.texts) / self.seconds


def translate(run: Path, lines: Sequence[str], at_once: int) -> ServedTranslation:
    """Ask ``heedful translate``: a line to warm up, then some at a time, as clients would."""
    process = subprocess.Popen(
        [sys.executable, "-m", "heedful", "translate", str(run), *ALIKE, "--format", "jsonl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    with process as command:
        if command.stdin is None or command.stdout is None:
            raise RuntimeError("pipes were asked for")
        command.stdin.write(f"{lines[0]}\n")
        command.stdin.flush()
        command.stdout.readline()
        begun, spent = time.monotonic(), processor_seconds(process)
        found = []
        for first in range(0, len(lines), at_once):
            some = lines[first : first + at_once]
            command.stdin.writelines(f"{line}\n" for line in some)
            command.stdin.flush()
            answers = [command.stdout.readline() for _ in some]
            if not all(answers):  # it has ended
                break
            found += map(json.loads, answers)
        command.stdin.close()
        found += map(json.loads, command.stdout)
        seconds, spent = time.monotonic() - begun, processor_seconds(process) - spent
    if process.returncode or len(found) != len(lines):
        raise RuntimeError(f"{len(lines)} lines gave {len(found)}, exit {process.returncode}")
    texts = tuple(str(one["text"]) for one in found)
    return ServedTranslation(texts, tuple(float(one["score"]) for one in found), seconds, spent)


@dataclass(frozen=True)
class Loaded:
    """What many clients got."""

    clients: int
    """How many asked at once."""
    answers: int
    """Requests that were answered."""
    seconds: float
    processor_seconds: float
    """From the first question to the last answer; of the server."""
    statuses: dict[str, int]
    """How often each status, or each failure, came."""
    equal: int
    close: int
    other: int
    """Answers with the text of the command line; with another but its score; with neither."""
    p50: float
    p99: float
    """Seconds that half, and all but one in a hundred, of the requests took at most."""
    memory: int
    peak: int
    """Bytes of the server at the end, and at most."""
    before: ServedTranslation
    after: ServedTranslation
    """What the command line said and took, before and after."""

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.answers / self.seconds

    @property
    def share(self) -> float:
        """Throughput, as a share of the command line's with as many lines at a time as clients."""
        return self.rate / ((self.before.rate + self.after.rate) / 2)

    @property
    def processor_share(self) -> float:
        """The same by time of the processor, which others that use the machine hardly change."""
        said = (self.before, self.after)
        each = sum(one.processor_seconds / len(one.texts) for one in said) / len(said)
        return each * self.answers / self.processor_seconds

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values; the texts of the command line are replaced by rates."""
        plain = {key: value for key, value in vars(self).items() if key not in ("before", "after")}
        return plain | {
            "rate": self.rate,
            "rate_before": self.before.rate,
            "rate_after": self.after.rate,
            "share": self.share,
            "processor_share": self.processor_share,
        }

    @property
    def steady(self) -> bool:
        """Whether the machine was as fast after as before."""
        return abs(self.before.rate / self.after.rate - 1) < STEADY


def measure_load(
    run: Path, vocabulary: int, *, clients: int = 64, seconds: float = 60, lines: int = 256
) -> Loaded:
    """Let clients ask for a time, and compare with the command line."""
    texts = random_lines(vocabulary, WORDS, lines)
    before = translate(run, texts, clients)

    def make(number: int) -> SentRequest:
        text = texts[number % len(texts)]
        return SentRequest.of("/v1/translate", q=text, source="xx", target="yy", split=False)

    with serving(f"{DIRECTION}{run}", *ALIKE) as server:
        asyncio.run(load(server.port, make, clients=1, requests=3))
        spent = processor_seconds(server.process)
        answers = asyncio.run(load(server.port, make, clients=clients, seconds=seconds))
        spent = processor_seconds(server.process) - spent
        memory, peak = server.memory, server.peak
    after = translate(run, texts, clients)
    kinds: Counter[str] = Counter(_compared(one, before) for one in answers if one.status == 200)
    took = sorted(one.seconds for one in answers)
    percent = quantiles(took, n=100, method="inclusive")
    return Loaded(
        clients,
        sum(one.status == 200 for one in answers),
        max(one.ended for one in answers) - min(one.begun for one in answers),
        spent,
        dict(Counter(str(one.status or one.problem) for one in answers)),
        kinds["equal"],
        kinds["close"],
        kinds["other"],
        percent[49],
        percent[98],
        memory,
        peak,
        before,
        after,
    )


def _compared(answer: ClientReply, said: ServedTranslation) -> str:
    """Compare an answer with the command line's."""
    found = json.loads(answer.body)["translations"][0]
    line = answer.number % len(said.texts)
    if found["text"] == said.texts[line]:
        return "equal"
    return "close" if abs(found["score"] - said.scores[line]) <= SCORE else "other"


@dataclass(frozen=True)
class Flat:
    """What a server held while it answered many requests."""

    requests: int
    """Number of layers."""
    seconds: float
    statuses: dict[str, int]
    """How often each status, or each failure, came."""
    memory: tuple[int, ...]
    """Bytes after each fortieth part of the requests."""

    @property
    def growth(self) -> float:
        """Most of the second half, of the most of the second quarter."""
        many = len(self.memory)
        return max(self.memory[many // 2 :]) / max(self.memory[many // 4 : many // 2])


def mixed(texts: Sequence[str], number: int) -> SentRequest:
    """Send a different request each time, sometimes an invalid one."""
    text = texts[number % len(texts)]
    both = {"source": "xx", "target": "yy"}
    kinds = (
        SentRequest.of("/translate", q=[text, texts[0]], alternatives=2, **both),
        SentRequest.of("/translate", q=f"<p>{text} <b>w1 w2</b></p>", format="html", **both),
        SentRequest.of("/v1/stream", q=f"{text}\n\n{texts[1]}", **both),
        SentRequest.of("/detect", q=text),
        SentRequest.of("/v1/translate", q=text, probabilities=True, alignments=True, **both),
        SentRequest.of("/translate", q=text, source="xx", target="no such"),
        SentRequest("/translate", b'{"q": "w1'),
    )
    place = number % 10
    return kinds[place] if place < len(kinds) else SentRequest.of("/translate", q=text, **both)


def measure_memory(
    run: Path, vocabulary: int, *, requests: int = 20_000, clients: int = 16
) -> Flat:
    """Ask many times and watch the server's memory."""
    texts = random_lines(vocabulary, WORDS, 500)
    seen: list[int] = []
    with serving(f"{DIRECTION}{run}", *ALIKE, "--max-queue", 10_000) as server:
        answered = 0

        def tell(_: ClientReply) -> None:
            nonlocal answered
            answered += 1
            if answered % max(1, requests // 40) == 0:
                seen.append(server.memory)

        begun = time.monotonic()
        answers = asyncio.run(
            load(
                server.port,
                lambda number: mixed(texts, number),
                clients=clients,
                requests=requests,
                tell=tell,
            )
        )
        seconds = time.monotonic() - begun
    statuses = Counter(str(one.status or one.problem) for one in answers)
    return Flat(len(answers), seconds, dict(statuses), tuple(seen))


@dataclass(frozen=True)
class Stopped:
    """The answers of clients while the server stops."""

    before: dict[str, int]
    """Statuses of the requests that were begun before."""
    after: dict[str, int]
    """Of those that were begun after."""
    seconds: float
    """From the signal to the end of the process."""
    code: int
    """With which it ended."""


def measure_stop(run: Path, vocabulary: int, *, clients: int = 64, seconds: float = 5) -> Stopped:
    """Tell a server to stop in the middle."""
    texts = random_lines(vocabulary, WORDS, 256)
    both = {"source": "xx", "target": "yy"}

    async def work(server: ServerProcess) -> tuple[list[ClientReply], float]:
        def make(number: int) -> SentRequest:
            return SentRequest.of("/translate", q=texts[number % len(texts)], **both)

        asking = asyncio.create_task(load(server.port, make, clients=clients, seconds=seconds + 10))
        await asyncio.sleep(seconds)
        told = time.monotonic()
        server.stop()
        return await asking, told

    with serving(f"{DIRECTION}{run}", *ALIKE) as server:
        answers, told = asyncio.run(work(server))
        code = server.process.wait(60)
        ended = time.monotonic()
    kinds: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    for one in answers:
        kinds[one.begun >= told][str(one.status or one.problem)] += 1
    return Stopped(dict(kinds[0]), dict(kinds[1]), ended - told, code)


@contextmanager
def in_folder(shape: str, vocabulary: int) -> Iterator[Path]:
    """Make a run in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        yield make_run(Path(folder) / "run", shape, vocabulary)
