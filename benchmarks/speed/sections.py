"""
The sections of the speed benchmark: comparisons and curves.

Each function takes a `Context` and returns JSON values, from which the page is written.
"""

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import torch

from benchmarks.report import HELD
from benchmarks.speed.context import Context
from benchmarks.speed.kernels import kernels
from benchmarks.speed.search import search
from benchmarks.speed.whole import corpus, ranks, start, training
from benchmarks.training import text_files
from heedful.text.corpus import read_lines

Section = Callable[[Context], dict[str, Any]]

BASE = ("paper-base", "--vocabulary", 37_000)
TINY = ("tiny", "--vocabulary", 500)
BATCHES = (1, 4, 16, 64)
_PASSES = 3  # the first pass is slower in all toolkits, which start threads and allocate memory
# On a CPU other variants are slower. Marian is several times slower, so it translates a tenth of
# the lines.
_ENGINE = ("int8", "int8 workers", "int8 AVX512", "int8 AVX512 workers")
FAST = ("heedful int8", *(f"ctranslate2 {way}" for way in _ENGINE))
_FLOATS = ("ctranslate2 float32", "ctranslate2 float32 workers")


def step(context: Context, precision: str = "auto") -> dict[str, Any]:
    """Time the training step of the paper's base model, each toolkit in its best variant."""
    shape = context.size(TINY, BASE)
    return context.bench("train", *shape, *_steps(context, 5), "--precision", precision)


def step_small(context: Context) -> dict[str, Any]:
    """Time the steps of small recipes, which have small matrix products."""
    words = (*_steps(context, 10), "--only", "heedful")
    return {name: context.bench("train", name, *words) for name in ("small", "multi30k")}


def _steps(context: Context, steps: int) -> tuple[object, ...]:
    """Return the options to time and profile steps of 2,000 + 2,000 tokens."""
    tokens = ("--batch-tokens", context.size(200, 2000))
    return (*tokens, "--steps", context.size(1, steps), "--rounds", context.rounds, "--profile")


def memory(context: Context) -> dict[str, Any]:
    """Measure the memory of a large step, also in Marian, and of a step with the paper's batch."""
    parts = {
        "compared": (context.size(200, 4000), ("heedful", "marian")),
        "alone": (context.size(400, 25_000), ("heedful",)),
    }
    shape = context.size(TINY, BASE)
    return {
        name: context.bench("train", *shape, "--batch-tokens", tokens, "--steps", 1, *_only(who))
        for name, (tokens, who) in parts.items()
    }


def translate(context: Context, batch: int = 32, lines: int = 1000) -> dict[str, Any]:
    """Translate Multi30k's test set with beam 4, with the same weights in all toolkits."""
    source, reference = context.pair("test_2016_flickr")
    text = ("--input", source, "--reference", reference, "--lines", context.size(4, lines))
    often = ("--batch", batch, "--repeats", _PASSES, "--rounds", context.rounds)
    return context.bench("translate", context.trained(), *text, *often, *_searching())


def translate_random(context: Context) -> dict[str, Any]:
    """Translate with random weights; all sources and all outputs have the same length."""
    recipe, vocabulary, count, tokens = context.size(
        ("tiny", 500, 8, 4), ("paper-base", 8000, 512, 14)
    )
    shape = ("--recipe", recipe, "--vocabulary", vocabulary, "--lines", count, "--tokens", tokens)
    often = ("--source-length", 16, "--repeats", _PASSES, "--rounds", context.rounds)
    return {
        f"{batch} at a time": context.bench(
            "translate", *shape, "--batch", batch, *often, *_searching()
        )
        for batch in (32, 64)
    }


def lines(context: Context) -> dict[str, Any]:
    """Translate 1,500 lines of mixed lengths, as `heedful translate` streams them."""
    count = context.size(8, 1500)
    text = context.work / "mixed.en"
    mixed = islice(_join_sentences(read_lines(context.text("train", "en"))), count)
    text.write_text("".join(f"{line}\n" for line in mixed), encoding="utf-8")
    words = ("translate", context.trained(), "--input", text, "--repeats", 1)
    part = ("--lines", max(1, count // 10))
    return {
        "all": context.bench(*words, *_only(_runnable_ways(FAST))),
        "part": context.bench(*words, *part, *_only((*FAST[:1], "marian"))),
    }


def _searching() -> list[str]:
    """Return the options for all variants of heedful and CTranslate2."""
    if HELD not in os.environ:
        return _only(("heedful", "ctranslate2"))
    return _only(("heedful", "heedful int8", *_runnable_ways((*FAST[1:], *_FLOATS))))


def _runnable_ways(ways: tuple[str, ...]) -> tuple[str, ...]:
    """Remove AVX512 variants if the processor is limited to AVX2."""
    return tuple(way for way in ways if not (HELD in os.environ and "AVX512" in way))


def _only(names: tuple[str, ...]) -> list[str]:
    """Return `--only` options that name systems."""
    return [word for name in names for word in ("--only", name)]


def _join_sentences(sentences: Iterator[str]) -> Iterator[str]:
    """Join one to four sentences into each line."""
    number = 0
    while part := list(islice(sentences, 1 + number % 4)):
        yield " ".join(part)
        number += 1


def stream(context: Context) -> dict[str, Any]:
    """Measure the memory that a text takes, and the memory that a text ten times as long takes."""
    few, many = context.size((100, 1000), (10_000, 100_000))
    shape = ("--recipe", *context.size(("tiny", "--tokens", 4), ("small", "--tokens", 12)))
    once = ("--repeats", 1, "--source-length", 14, "--only", "heedful int8")
    return {
        name: context.bench("translate", *shape, "--lines", count, *once)
        for name, count in (("few", few), ("many", many))
    }


def data(context: Context) -> dict[str, Any]:
    """Time the stages from text to batches."""
    files = text_files(context.pair("train"))
    words = context.size(("tiny", "--repeats", 1), ("small",))
    output = context.heedful("bench", "data", *words, *files, "--json").output
    report: dict[str, Any] = json.loads(output)
    return report


def curves(context: Context) -> dict[str, Any]:
    """Measure tokens per second by batch size, sentence length and vocabulary size."""
    recipe = context.size("tiny", "paper-base")
    who = (*_only(("heedful", "marian")), "--precision", "bf16", "--steps", context.size(1, 2))

    def measure(
        tokens: int = context.size(200, 2000),
        length: int = 25,
        vocabulary: int = context.size(500, 8000),
    ) -> dict[str, Any]:
        mean = ("--source-length", length, "--target-length", length)
        size = ("--batch-tokens", tokens, "--vocabulary", vocabulary)
        return context.bench("train", recipe, *size, *mean, *who)

    sizes, lengths = context.size(((100, 200), (10, 20)), ((250, 1000, 4000), (10, 50, 200)))
    words, batches = context.size(((500, 1000), (1, 4)), ((2000, 8000, 37_000), BATCHES))
    return {
        "batch": {tokens: measure(tokens=tokens) for tokens in sizes},
        "length": {length: measure(length=length) for length in lengths},
        "vocabulary": {count: measure(vocabulary=count) for count in words},
        "search": {batch: _search(context, batch) for batch in batches},
    }


def _search(context: Context, batch: int) -> dict[str, Any]:
    """Translate with random weights; every output has 24 tokens."""
    shape = context.size(
        ("tiny", "--lines", 8, "--tokens", 4),
        ("paper-base", "--vocabulary", 8000, "--lines", max(16, 2 * batch)),
    )
    who = _only(("heedful", *FAST))
    return context.bench("translate", "--recipe", *shape, "--batch", batch, "--repeats", 2, *who)


def gpu(context: Context) -> dict[str, Any]:
    """Measure steps and searches of the paper's two models on a GPU."""
    if not torch.cuda.is_available():
        raise SystemExit("the section gpu needs a GPU, but torch sees none")
    where = ("--vocabulary", 37_000, "--device", "cuda", "--precision", "bf16")
    reports: dict[str, Any] = {}
    for recipe in ("paper-base", "paper-big"):
        tokens = ("--batch-tokens", 25_000, "--rounds", context.rounds)
        reports[f"{recipe} step"] = context.bench("train", recipe, *tokens, *where)
        size = ("--lines", 512, "--batch", 128, "--repeats", 3)
        reports[f"{recipe} search"] = context.bench("translate", "--recipe", recipe, *size, *where)
    return reports


SECTIONS: dict[str, Section] = {
    "training": training,
    "step": step,
    "step-fp32": partial(step, precision="fp32"),
    "step-small": step_small,
    "kernels": kernels,
    "memory": memory,
    "translate": translate,
    "translate-64": partial(translate, batch=64, lines=512),
    "translate-one": partial(translate, batch=1, lines=100),
    "translate-random": translate_random,
    "search": search,
    "lines": lines,
    "stream": stream,
    "start": start,
    "data": data,
    "curves": curves,
    "corpus": corpus,
    "ranks": ranks,
    "gpu": gpu,
}

ON_A_GPU = ("gpu",)
