"""Whole commands, start to end: training beside Joey NMT, start-up, memory growth, two ranks."""

import gzip
import json
import lzma
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from benchmarks.prepare import Watch
from benchmarks.speed.context import PEERS, Context
from heedful.bench.work import shape_of
from heedful.config.load import load_config
from heedful.machine.benchmark import measured_rates


def training(context: Context) -> dict[str, Any]:
    """Train an epoch of Multi30k with `small`: heedful's command and Joey NMT's, in turns."""
    if context.quick:
        return epoch(context, "tiny", ("--set", "data.vocabulary_size=500"), 200, 1)
    return epoch(context, "small", (), 29_000, min(context.rounds, 2))


def epoch(
    context: Context, recipe: str, shape: Sequence[str], pairs: int, rounds: int
) -> dict[str, Any]:
    """Train an epoch of so many pairs of Multi30k: heedful's command and Joey NMT's, in turns."""
    source, target = (_part(context, language, pairs) for language in ("en", "de"))
    turns: list[dict[str, Any]] = []
    for number in range(rounds):
        prepared = context.work / "prepared"
        text = ("--source", source, "--target", target)
        shutil.rmtree(prepared, ignore_errors=True)
        context.heedful("data", "prepare", recipe, *text, "--out", prepared, *shape)
        out = context.work / f"epoch-{number}"
        shutil.rmtree(out, ignore_errors=True)
        config = load_config(recipe, [part for part in shape if part != "--set"])
        tokens = _larger_side(prepared)
        steps = -(-tokens // config.train.batch_tokens)
        last = ("--set", f"train.steps={steps}", "--set", "train.checkpoint_minutes=none")
        done = context.heedful("train", recipe, *text, "--out", out, *shape, *last)
        log = _last_line(out)
        turns.append(
            {
                "heedful": {
                    "seconds": done.seconds,
                    "target_tokens": log["target_tokens"],
                    "own_seconds": log["seconds"],
                    "memory": log["memory"],
                    "steps": steps,
                },
                "joey": _joey(context, recipe, [*shape[1::2]], pairs),
            }
        )
    products = measured_rates(torch.device("cpu"))
    return {"recipe": recipe, "pairs": pairs, "turns": turns, "products": products}


def _joey(context: Context, recipe: str, settings: list[str], pairs: int) -> dict[str, Any]:
    """Let Joey NMT train by its own command."""
    config = load_config(recipe, settings)
    python = PEERS / "joey" / ".venv" / "bin" / "python"
    if not python.exists():
        return {"missing": "make peers"}
    request = {
        "task": "end_to_end",
        "languages": ["en", "de"],
        "train": {language: str(context.text("train", language)) for language in ("en", "de")},
        "valid": {language: str(context.text("val", language)) for language in ("en", "de")},
        "pairs": pairs,
        "model": shape_of(config, config.data.vocabulary_size),
        "warmup": config.train.warmup,
        "label_smoothing": config.train.label_smoothing,
        "batch_tokens": config.train.batch_tokens,
        "threads": context.threads or 2,
        "device": "cpu",
    }
    done = subprocess.run(
        [python, PEERS / "joey" / "bench.py"],
        input=json.dumps(request),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if answer["command"] not in context.commands:
        context.commands.append(answer["command"])
    return answer


def start(context: Context) -> dict[str, Any]:
    """Time `translate` from the start of its process to the first line, beside `import torch`."""
    run = context.work / "small"
    if not (run / "config.json").exists():
        text = ("--source", context.text("val", "en"), "--target", context.text("val", "de"))
        few = ("--set", "train.steps=2", "--set", "data.vocabulary_size=1000")
        context.heedful("train", "tiny" if context.quick else "small", *text, "--out", run, *few)
    times: dict[str, list[float]] = {"import torch": [], "first translation": []}
    command = [sys.executable, "-m", "heedful", "translate", str(run)]
    command += ["--threads", str(context.threads)]
    context.record(command)
    for _ in range(1 if context.quick else 7):
        started = time.monotonic()
        subprocess.run([sys.executable, "-c", "import torch"], check=True)
        times["import torch"].append(time.monotonic() - started)
        times["first translation"].append(_first_line(command))
    return {name: {"median": statistics.median(all_), "all": all_} for name, all_ in times.items()}


def _first_line(command: list[str]) -> float:
    """Send one line and wait for its translation; the command goes on waiting for more."""
    started = time.monotonic()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise SystemExit("the command must have pipes")
        process.stdin.write("Two men are playing.\n")
        process.stdin.flush()
        process.stdout.readline()
        seconds = time.monotonic() - started
        process.stdin.close()
    return seconds


def corpus(context: Context) -> dict[str, Any]:
    """Let the corpus grow a hundredfold: what a pair costs to prepare and a token to train on."""
    sizes = (200, 2000) if context.quick else (10_000, 100_000, 1_000_000)
    steps = 4 if context.quick else 60
    found = {}
    for size in sizes:
        text = [_europarl(context, language, size) for language in ("fr", "en")]
        files = ("--source", text[0], "--target", text[1])
        prepared, out = (context.work / f"{name}-{size}" for name in ("prepared", "grown"))
        for folder in (prepared, out):
            shutil.rmtree(folder, ignore_errors=True)
        small = ("--set", "data.vocabulary_size=1000") if context.quick else ()
        made = context.heedful("data", "prepare", "small", *files, "--out", prepared, *small)
        until = ("--set", f"train.steps={steps}", "--set", "train.checkpoint_minutes=none")
        done = context.heedful("train", "small", "--data", prepared, "--out", out, *small, *until)
        log = _last_line(out)
        found[size] = {
            "prepare_seconds": made.seconds,
            "prepare_memory": made.peak,
            "train_seconds": log["seconds"],
            "command_seconds": done.seconds,
            "target_tokens": log["target_tokens"],
            "source_tokens": log["source_tokens"],
            "memory": log["memory"],
        }
    return {"sizes": found, "steps": steps}


def ranks(context: Context) -> dict[str, Any]:
    """Train with one process of two threads, and with two of one thread."""
    text = ("--source", context.text("train", "en"), "--target", context.text("train", "de"))
    if context.quick:
        text = ("--source", context.text("val", "en"), "--target", context.text("val", "de"))
    small = ("tiny", "--set", "data.vocabulary_size=500") if context.quick else ("small",)
    steps = 3 if context.quick else 60
    last = ("--set", f"train.steps={steps}", "--set", "train.checkpoint_minutes=none")
    # the largest part of a batch is an equal share of it, so that both ranks have one
    parts = ("--set", "train.micro_batch_tokens=2048", "--device", "cpu")
    found = {}
    for world, threads in ((1, 1), (1, 2), (2, 1)):
        out = context.work / f"ranks-{world}-{threads}"
        shutil.rmtree(out, ignore_errors=True)
        rest = ("train", *small, *text, "--out", out, *last, *parts, "--threads", threads)
        started = time.monotonic()
        if world == 1:
            context.heedful(*rest)
        else:
            _torchrun(context, world, rest)
        log = _last_line(out)
        found[f"{world} of {threads}"] = {
            "command_seconds": time.monotonic() - started,
            "seconds": log["seconds"],
            "target_tokens": log["target_tokens"],
            "rate": _rate(out),
        }
    return {"steps": steps, "runs": found}


def _torchrun(context: Context, world: int, rest: tuple[object, ...]) -> None:
    """Start several processes."""
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", world)
    command = [*map(str, (*torchrun, "-m", "heedful", *rest))]
    context.record(command)
    with subprocess.Popen(command) as process:
        watch = Watch(process.pid)
        watch.start()
        if process.wait():
            raise SystemExit("torchrun failed")


def _rate(run: Path) -> float:
    """Median of the logged target tokens a second, the first line left out."""
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]
    rates = [line["target_tokens_per_second"] for line in lines if "target_tokens" in line]
    return statistics.median(rates[1:] or rates)


def _last_line(run: Path) -> dict[str, Any]:
    """Read the last training line of a log."""
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]
    last: dict[str, Any] = [line for line in lines if "target_tokens" in line][-1]
    return last


def _larger_side(prepared: Path) -> int:
    """Count the tokens of an epoch, end symbols included, as batches are measured."""
    meta = json.loads((prepared / "data" / "meta.json").read_text("utf-8"))
    return max(meta[side]["ids"] for side in ("source", "target")) + meta["pairs"]


def _part(context: Context, language: str, pairs: int) -> Path:
    """Write the first pairs of Multi30k's training text, or name the file if they are all."""
    whole = context.text("train", language)
    if pairs >= 29_000:
        return whole
    path = context.work / f"part.{language}"
    with gzip.open(whole, "rt", encoding="utf-8") as file:
        path.write_text("".join(islice(file, pairs)), encoding="utf-8")
    return path


def _europarl(context: Context, language: str, pairs: int) -> Path:
    """Write the first pairs of Europarl's training text."""
    path = context.work / f"europarl-{pairs}.{language}"
    if path.exists():
        return path
    left = pairs
    with path.open("w", encoding="utf-8") as out:
        for shard in sorted((context.data / "europarl-fr-en").glob(f"train.*.{language}.xz")):
            with lzma.open(shard, "rt", encoding="utf-8") as file:
                for line in islice(file, left):
                    out.write(line)
                    left -= 1
            if not left:
                break
    return path
