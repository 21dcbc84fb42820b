"""Whole commands: training compared with Joey NMT, startup time, growing corpora, two ranks."""

import json
import lzma
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from benchmarks.speed.context import PEERS, Context
from benchmarks.training import chosen, last_line, read_lines, read_log, text_files
from heedful.config.load import load_config
from heedful.experiments.work import shape_of
from heedful.kernels.product_rates import measured_rates
from heedful.machine.devices import resolve_threads


def training(context: Context) -> dict[str, Any]:
    """Train an epoch of Multi30k with `small`: heedful's command and Joey NMT's, in turns."""
    if context.quick:
        return epoch(context, "tiny", ("data.vocabulary_size=500",), 200, 1)
    return epoch(context, "small", (), 29_000, min(context.rounds, 2))


def epoch(
    context: Context, recipe: str, settings: Sequence[str], pairs: int, rounds: int
) -> dict[str, Any]:
    """Train an epoch of `pairs` of Multi30k: heedful's command and Joey NMT's, in turns."""
    files = text_files([_first_pairs(context, language, pairs) for language in ("en", "de")])
    config, words = load_config(recipe, settings), chosen(settings)
    turns: list[dict[str, Any]] = []
    for _ in range(rounds):
        prepared, out = _new_folders(context, "prepared", "epoch")
        context.heedful("data", "prepare", recipe, *files, "--out", prepared, *words)
        steps = -(-_larger_side(prepared) // config.train.batch_tokens)
        last = chosen((f"train.steps={steps}", "train.checkpoint_minutes=none"))
        threads = ("--threads", resolve_threads(context.threads))
        done = context.heedful("train", recipe, *files, "--out", out, *threads, *words, *last)
        log = last_line(out)
        ours = {
            "seconds": done.seconds,
            "target_tokens": log["target_tokens"],
            "own_seconds": log["seconds"],
            "memory": log["memory"],
            "steps": steps,
        }
        turns.append({"heedful": ours, "joey": _joey(context, recipe, settings, pairs)})
    products = measured_rates(torch.device("cpu"))
    return {"recipe": recipe, "pairs": pairs, "turns": turns, "products": products}


def command_seconds(side: dict[str, Any]) -> float:
    """Read the seconds of a whole command; a peer reports them in a list."""
    seconds = side["seconds"]
    return float(seconds[0] if isinstance(seconds, list) else seconds)


def best_rates(section: dict[str, Any], seconds: str = "") -> dict[str, float]:
    """
    Compute the target tokens per second of each toolkit in its best, least disturbed turn.

    `seconds`: the key of the measured seconds; empty for the seconds of the whole command.
    """
    return {
        who: max(
            turn[who]["target_tokens"]
            / (turn[who][seconds] if seconds else command_seconds(turn[who]))
            for turn in section["turns"]
        )
        for who in ("heedful", "joey")
    }


def _joey(context: Context, recipe: str, settings: Sequence[str], pairs: int) -> dict[str, Any]:
    """Train with Joey NMT's own command."""
    config = load_config(recipe, settings)
    python = PEERS / "joey" / ".venv" / "bin" / "python"
    if not python.exists():
        return {"missing": "make peers"}
    languages = ("en", "de")
    request = {
        "task": "end_to_end",
        "languages": languages,
        "train": {language: str(context.text("train", language)) for language in languages},
        "valid": {language: str(context.text("val", language)) for language in languages},
        "pairs": pairs,
        "model": shape_of(config, config.data.vocabulary_size),
        "warmup": config.train.warmup,
        "label_smoothing": config.train.label_smoothing,
        "batch_tokens": config.train.batch_tokens,
        "threads": resolve_threads(context.threads),
        "device": "cpu",
    }
    command, text = [python, PEERS / "joey" / "bench.py"], json.dumps(request)
    output = subprocess.check_output(command, input=text, encoding="utf-8")
    answer: dict[str, Any] = json.loads(output.splitlines()[-1])
    if answer["command"] not in context.commands:
        context.commands.append(answer["command"])
    return answer


def start(context: Context) -> dict[str, Any]:
    """Time `translate` from its start to the first translated line, and `import torch` alone."""
    run = context.work / "small"
    if not (run / "config.json").exists():
        files = text_files(context.pair("val"))
        few = chosen(("train.steps=2", "data.vocabulary_size=1000"))
        context.heedful("train", context.size("tiny", "small"), *files, "--out", run, *few)
    times: dict[str, list[float]] = {"import torch": [], "first translation": []}
    command = [sys.executable, "-m", "heedful", "translate", str(run)]
    command += ["--threads", str(context.threads)]
    context.record(command)
    for _ in range(context.size(1, 7)):
        started = time.monotonic()
        subprocess.run([sys.executable, "-c", "import torch"], check=True)
        times["import torch"].append(time.monotonic() - started)
        times["first translation"].append(_first_line(command))
    return {name: {"median": statistics.median(all_), "all": all_} for name, all_ in times.items()}


def _first_line(command: list[str]) -> float:
    """Return the seconds until a command has translated one line while its input stays open."""
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
    """Measure the cost of a pair and of a token while the corpus grows a hundredfold."""
    steps = context.size(4, 60)
    small = chosen(context.size(("data.vocabulary_size=1000",), ()))
    until = chosen((f"train.steps={steps}", "train.checkpoint_minutes=none"))
    rows = {}
    for size in context.size((200, 2000), (10_000, 100_000, 1_000_000)):
        files = text_files([europarl(context, language, size) for language in ("fr", "en")])
        prepared, out = _new_folders(context, f"prepared-{size}", f"grown-{size}")
        preparation = context.heedful("data", "prepare", "small", *files, "--out", prepared, *small)
        done = context.heedful("train", "small", "--data", prepared, "--out", out, *small, *until)
        log = last_line(out)
        rows[size] = {
            "prepare_seconds": preparation.seconds,
            "prepare_memory": preparation.peak,
            "train_seconds": log["seconds"],
            "command_seconds": done.seconds,
            **{name: log[name] for name in ("target_tokens", "source_tokens", "memory")},
        }
    return {"sizes": rows, "steps": steps}


def ranks(context: Context) -> dict[str, Any]:
    """Train with one process of two threads, and with two processes of one thread."""
    files = text_files(context.pair(context.size("val", "train")))
    recipe = context.size(("tiny", *chosen(("data.vocabulary_size=500",))), ("small",))
    steps = context.size(3, 60)
    # a micro-batch is at most half of a batch, so that both ranks have a micro-batch
    parts = ("train.checkpoint_minutes=none", "train.micro_batch_tokens=2048")
    settings = chosen((f"train.steps={steps}", *parts))
    runs = {}
    for world, threads in ((1, 1), (1, 2), (2, 1)):
        (out,) = _new_folders(context, f"ranks-{world}-{threads}")
        words = ("train", *recipe, *files, "--out", out, *settings, "--device", "cpu")
        launcher = ("-m", "torch.distributed.run", "--nproc-per-node", world) if world > 1 else ()
        command = (sys.executable, *launcher, "-m", "heedful", *words, "--threads", threads)
        done = context.command(*command)
        log = last_line(out)
        runs[f"{world} of {threads}"] = {
            "command_seconds": done.seconds,
            "seconds": log["seconds"],
            "target_tokens": log["target_tokens"],
            "rate": _rate(out),
        }
    return {"steps": steps, "runs": runs}


def _rate(run: Path) -> float:
    """Compute the median of the logged target tokens per second, without the first line."""
    lines = [line for line in read_log(run) if "target_tokens" in line]
    rates = [line["target_tokens_per_second"] for line in lines]
    return statistics.median(rates[1:] or rates)


def _new_folders(context: Context, *names: str) -> list[Path]:
    """Return folders for runs, and delete their contents from an earlier turn."""
    folders = [context.work / name for name in names]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    return folders


def _larger_side(prepared: Path) -> int:
    """Count the tokens of an epoch, end symbols included, on the larger side."""
    meta = json.loads((prepared / "data" / "meta.json").read_text("utf-8"))
    return max(meta[side]["ids"] for side in ("source", "target")) + meta["pairs"]


def _first_pairs(context: Context, language: str, pairs: int) -> Path:
    """Write the first lines of Multi30k's training text; return the original file for all lines."""
    every = context.text("train", language)
    if pairs >= 29_000:
        return every
    path = context.work / f"part.{language}"
    path.write_text("".join(f"{line}\n" for line in read_lines(every)[:pairs]), encoding="utf-8")
    return path


def europarl(context: Context, language: str, pairs: int) -> Path:
    """Write the first lines of Europarl's training text in a language."""
    path = context.work / f"europarl-{pairs}.{language}"
    if path.exists():
        return path
    shards = sorted((context.data / "europarl-fr-en").glob(f"train.*.{language}.xz"))
    lines = (line for shard in shards for line in _lines(shard))
    with path.open("w", encoding="utf-8") as out:
        out.writelines(islice(lines, pairs))
    return path


def _lines(shard: Path) -> Iterator[str]:
    with lzma.open(shard, "rt", encoding="utf-8") as file:
        yield from file
