"""Measurements of a server: throughput and answers under load, memory, and a stop under load."""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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

# Settings of the model that differ from the paper's base model, and settings of the search.
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
# Options that give the server and the command line the same device and precision.
ALIKE = ("--device", "cpu", "--precision", "fp32")


def make_run(folder: Path, shape: str, vocabulary: int) -> Path:
    """Write an untrained run, which translates up to its length limit."""
    folder.mkdir(parents=True)
    make_random_run(folder, RunConfig().with_settings(SHAPES[shape]), vocabulary)
    return folder


@dataclass(frozen=True)
class ServedTranslation:
    """Translations by the command line, with their scores and times."""

    texts: tuple[str, ...]
    scores: tuple[float, ...]
    seconds: float
    processor_seconds: float
    """CPU seconds; both times are from the first line sent to the last line received."""

    @property
    def rate(self) -> float:
        """Lines per second."""
        return len(self.texts) / self.seconds


def translate(run: Path, lines: Sequence[str], at_once: int) -> ServedTranslation:
    """Run ``heedful translate`` with a line to warm up, then with `at_once` lines at a time."""
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
        answers = []
        for first in range(0, len(lines), at_once):
            part = lines[first : first + at_once]
            command.stdin.writelines(f"{line}\n" for line in part)
            command.stdin.flush()
            printed = [command.stdout.readline() for _ in part]
            if not all(printed):  # the command has ended
                break
            answers += map(json.loads, printed)
        command.stdin.close()
        answers += map(json.loads, command.stdout)
        seconds, spent = time.monotonic() - begun, processor_seconds(process) - spent
    if process.returncode or len(answers) != len(lines):
        raise RuntimeError(f"{len(lines)} lines gave {len(answers)}, exit {process.returncode}")
    texts = tuple(str(answer["text"]) for answer in answers)
    scores = tuple(float(answer["score"]) for answer in answers)
    return ServedTranslation(texts, scores, seconds, spent)


def measure_load(
    run: Path, vocabulary: int, *, clients: int = 64, seconds: float = 60, lines: int = 256
) -> dict[str, Any]:
    """
    Send requests from several clients, and compare with the command line before and after.

    Returns the count of each status. Answers are `equal` to the command line's, `close` (another
    text with a score within `SCORE`) or `other`. Half of the answers arrive within `p50` seconds,
    and 99% within `p99`. The server's memory is in bytes, and rates are answers per second. Shares
    compare the server, by elapsed time and by CPU time, with the command line, which gets as many
    lines at a time as there are clients. `steady` tells whether the machine was as fast after the
    load as before.
    """
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
    kinds = Counter(_compare(answer, before) for answer in answers if answer.status == 200)
    percent = quantiles([answer.seconds for answer in answers], n=100, method="inclusive")
    count = sum(answer.status == 200 for answer in answers)
    took = max(answer.ended for answer in answers) - min(answer.begun for answer in answers)
    sides = (before, after)
    a_line = sum(side.processor_seconds / len(side.texts) for side in sides) / len(sides)
    return {
        "clients": clients,
        "answers": count,
        "seconds": took,
        "processor_seconds": spent,
        "statuses": _statuses(answers),
        **{kind: kinds[kind] for kind in ("equal", "close", "other")},
        "p50": percent[49],
        "p99": percent[98],
        "memory": memory,
        "peak": peak,
        "rate": count / took,
        "rate_before": before.rate,
        "rate_after": after.rate,
        "share": count / took / ((before.rate + after.rate) / 2),
        "processor_share": a_line * count / spent,
        "steady": abs(before.rate / after.rate - 1) < STEADY,
    }


def _statuses(answers: Iterable[ClientReply]) -> dict[str, int]:
    """Count how often each status, or each failure, occurred."""
    return dict(Counter(str(answer.status or answer.problem) for answer in answers))


def _compare(answer: ClientReply, expected: ServedTranslation) -> str:
    """Compare an answer with the translation of the command line."""
    translation = json.loads(answer.body)["translations"][0]
    line = answer.number % len(expected.texts)
    if translation["text"] == expected.texts[line]:
        return "equal"
    return "close" if abs(translation["score"] - expected.scores[line]) <= SCORE else "other"


def varied_request(texts: Sequence[str], number: int) -> SentRequest:
    """Build a different request for each number; some requests are invalid."""
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
) -> dict[str, Any]:
    """
    Send many requests, and measure the server's memory.

    Returns `memory`, the bytes after each fortieth of the requests. `growth` is the maximum in the
    second half divided by the maximum in the second quarter.
    """
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
                lambda number: varied_request(texts, number),
                clients=clients,
                requests=requests,
                tell=tell,
            )
        )
        seconds = time.monotonic() - begun
    many = len(seen)
    return {
        "requests": len(answers),
        "seconds": seconds,
        "statuses": _statuses(answers),
        "memory": seen,
        "growth": max(seen[many // 2 :]) / max(seen[many // 4 : many // 2]),
    }


def measure_stop(
    run: Path, vocabulary: int, *, clients: int = 64, seconds: float = 5
) -> dict[str, Any]:
    """
    Stop a server under load.

    Returns the statuses of requests that began before and after the signal, the seconds until the
    process ended, and its exit code.
    """
    texts = random_lines(vocabulary, WORDS, 256)
    both = {"source": "xx", "target": "yy"}

    async def work(server: ServerProcess) -> tuple[list[ClientReply], float]:
        def make(number: int) -> SentRequest:
            return SentRequest.of("/translate", q=texts[number % len(texts)], **both)

        asking = asyncio.create_task(load(server.port, make, clients=clients, seconds=seconds + 10))
        await asyncio.sleep(seconds)
        signaled = time.monotonic()
        server.stop()
        return await asking, signaled

    with serving(f"{DIRECTION}{run}", *ALIKE) as server:
        answers, signaled = asyncio.run(work(server))
        code = server.process.wait(60)
        ended = time.monotonic()
    return {
        "before": _statuses(answer for answer in answers if answer.begun < signaled),
        "after": _statuses(answer for answer in answers if answer.begun >= signaled),
        "seconds": ended - signaled,
        "code": code,
    }


@contextmanager
def in_folder(shape: str, vocabulary: int) -> Iterator[Path]:
    """Make a run in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        yield make_run(Path(folder) / "run", shape, vocabulary)
