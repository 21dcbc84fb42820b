"""
The sections of the speed benchmark: rows of the table of goals, and curves.

Each function takes a `Context` and returns plain values; the page is written from those alone.
"""

import json
import os
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from benchmarks.report import HELD
from benchmarks.speed.context import Context
from benchmarks.speed.kernels import kernels
from benchmarks.speed.search import search
from benchmarks.speed.whole import corpus, ranks, start, training
from heedful.text.corpus import read_lines

Section = Callable[[Context], dict[str, Any]]

BASE = ("paper-base", "--vocabulary", 37_000)
TINY = ("tiny", "--vocabulary", 500)


def step(context: Context) -> dict[str, Any]:
    """Time the training step of the paper's base model, everybody as they do it best."""
    return _step(context, "auto")


def step_fp32(context: Context) -> dict[str, Any]:
    """Time the same in fp32."""
    return _step(context, "fp32")


def _step(context: Context, precision: str) -> dict[str, Any]:
    """Time a step of 2,000 + 2,000 tokens."""
    shape = TINY if context.quick else BASE
    tokens = 200 if context.quick else 2000
    steps = 1 if context.quick else 5
    chosen = ("--precision", precision, "--steps", steps, "--rounds", context.rounds, "--profile")
    return context.bench("train", *shape, "--batch-tokens", tokens, *chosen)


def step_small(context: Context) -> dict[str, Any]:
    """Time the steps of the small recipes, whose products are small, too."""
    steps = 1 if context.quick else 10
    tokens = 200 if context.quick else 2000
    chosen = ("--batch-tokens", tokens, "--steps", steps, "--rounds", context.rounds, "--profile")
    return {
        name: context.bench("train", name, *chosen, "--only", "heedful")
        for name in ("small", "multi30k")
    }


def memory(context: Context) -> dict[str, Any]:
    """Measure the memory of a large step beside Marian, and of the paper's batch alone."""
    shape = TINY if context.quick else BASE
    compared, alone = (200, 400) if context.quick else (4000, 25_000)
    once = ("--steps", 1)
    both = ("--only", "heedful", "--only", "marian")
    return {
        "compared": context.bench("train", *shape, "--batch-tokens", compared, *once, *both),
        "alone": context.bench(
            "train", *shape, "--batch-tokens", alone, *once, "--only", "heedful"
        ),
    }


def translate(context: Context) -> dict[str, Any]:
    """Translate a test set with beam 4, 32 sentences at a time."""
    return _translate(context, 32, 1000)


def translate_64(context: Context) -> dict[str, Any]:
    """Translate half of it 64 sentences at a time."""
    return _translate(context, 64, 512)


def translate_one(context: Context) -> dict[str, Any]:
    """Translate some of it one sentence at a time."""
    return _translate(context, 1, 100)


def _translate(context: Context, batch: int, lines: int) -> dict[str, Any]:
    """Translate Multi30k's test set, weights everywhere the same."""
    name = "test_2016_flickr"
    text = ("--input", context.text(name, "en"), "--reference", context.text(name, "de"))
    some = ("--lines", 4 if context.quick else lines)
    often = ("--repeats", _PASSES, "--rounds", context.rounds)
    run = context.trained()
    return context.bench("translate", run, *text, *some, "--batch", batch, *often, *_searching())


def translate_random(context: Context) -> dict[str, Any]:
    """Translate with random weights: all sentences have one length, and are equally long."""
    size = ("tiny", 500, 8, 4) if context.quick else ("paper-base", 8000, 512, 14)
    recipe, vocabulary, count, tokens = size
    shape = ("--recipe", recipe, "--vocabulary", vocabulary, "--lines", count, "--tokens", tokens)
    often = ("--source-length", 16, "--repeats", _PASSES, "--rounds", context.rounds)
    return {
        f"{batch} at a time": context.bench(
            "translate", *shape, "--batch", batch, *often, *_searching()
        )
        for batch in (32, 64)
    }


_PASSES = 3  # the first is slower everywhere: threads begin, and memory is new


def lines(context: Context) -> dict[str, Any]:
    """Translate 1,500 lines of mixed lengths, as `heedful translate` streams them."""
    count = 8 if context.quick else 1500
    text = context.work / "mixed.en"
    sentences = read_lines(context.text("train", "en"))
    mixed = islice(_mixed(sentences), count)
    text.write_text("".join(f"{line}\n" for line in mixed), encoding="utf-8")
    asked = ("translate", context.trained(), "--input", text, "--repeats", 1)
    part = ("--lines", max(1, count // 10))
    return {
        "all": context.bench(*asked, *_only(_had(FAST))),
        "part": context.bench(*asked, *part, *_only((*FAST[:1], "marian"))),
    }


def _searching() -> list[str]:
    """Let heedful and CTranslate2 take part, in all their ways."""
    if HELD not in os.environ:
        return _only(("heedful", "ctranslate2"))
    return _only(("heedful", "heedful int8", *_had((*FAST[1:], *_FLOATS))))


def _had(ways: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out what a processor held to AVX2 does not have, though a peer would find it."""
    return tuple(way for way in ways if not (HELD in os.environ and "AVX512" in way))


def _only(names: tuple[str, ...]) -> list[str]:
    """Let these take part."""
    return [part for name in names for part in ("--only", name)]


# On a processor the other ways are slower, Marian's several times: it gets a tenth of the lines.
_ENGINE = ("int8", "int8 workers", "int8 AVX512", "int8 AVX512 workers")
FAST = ("heedful int8", *(f"ctranslate2 {way}" for way in _ENGINE))
_FLOATS = ("ctranslate2 float32", "ctranslate2 float32 workers")


def _mixed(sentences: Iterator[str]) -> Iterator[str]:
    """Put one to four sentences on a line."""
    number = 0
    while part := list(islice(sentences, 1 + number % 4)):
        yield " ".join(part)
        number += 1


def stream(context: Context) -> dict[str, Any]:
    """Translate ten times as many lines in the same memory."""
    few, many = (100, 1000) if context.quick else (10_000, 100_000)
    shape = (
        "--recipe",
        "tiny" if context.quick else "small",
        "--tokens",
        4 if context.quick else 12,
    )
    once = ("--repeats", 1, "--source-length", 14, "--only", "heedful int8")
    return {
        "few": context.bench("translate", *shape, "--lines", few, *once),
        "many": context.bench("translate", *shape, "--lines", many, *once),
    }


def data(context: Context) -> dict[str, Any]:
    """Time the stages from text to batches."""
    files = ("--source", context.text("train", "en"), "--target", context.text("train", "de"))
    recipe = "tiny" if context.quick else "small"
    few = ("--repeats", 1) if context.quick else ()
    return json.loads(context.heedful("bench", "data", recipe, *files, *few, "--json").output)


def curves(context: Context) -> dict[str, Any]:
    """Tokens a second against batch size, sentence length and vocabulary, heedful and Marian."""
    shape = "tiny" if context.quick else "paper-base"
    who = ("--only", "heedful", "--only", "marian", "--precision", "bf16")
    few = ("--steps", 1 if context.quick else 2)
    sizes = (100, 200) if context.quick else (250, 1000, 4000)
    lengths = (10, 20) if context.quick else (10, 50, 200)
    words = (500, 1000) if context.quick else (2000, 8000, 37_000)
    tokens = 200 if context.quick else 2000
    vocabulary = 500 if context.quick else 8000

    def measure(tokens: int, length: int, vocabulary: int) -> dict[str, Any]:
        mean = ("--source-length", length, "--target-length", length)
        size = ("--batch-tokens", tokens, "--vocabulary", vocabulary)
        return context.bench("train", shape, *size, *mean, *who, *few)

    return {
        "batch": {size: measure(size, 25, vocabulary) for size in sizes},
        "length": {length: measure(tokens, length, vocabulary) for length in lengths},
        "vocabulary": {size: measure(tokens, 25, size) for size in words},
        "search": {size: _search(context, size) for size in ((1, 4) if context.quick else BATCHES)},
    }


BATCHES = (1, 4, 16, 64)


def _search(context: Context, batch: int) -> dict[str, Any]:
    """Translate with random weights, every output 24 tokens."""
    if context.quick:
        shape = ("--recipe", "tiny", "--lines", 8, "--tokens", 4)
    else:
        shape = ("--recipe", "paper-base", "--vocabulary", 8000, "--lines", max(16, 2 * batch))
    who = _only(("heedful", *FAST))
    return context.bench("translate", *shape, "--batch", batch, "--repeats", 2, *who)


def gpu(context: Context) -> dict[str, Any]:
    """Measure the paper's two models at its batch size on a GPU, and their search."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("the section gpu needs a GPU, but torch sees none")
    where = ("--device", "cuda", "--precision", "bf16")
    found: dict[str, Any] = {}
    for recipe in ("paper-base", "paper-big"):
        words = ("--vocabulary", 37_000)
        tokens = ("--batch-tokens", 25_000, "--rounds", context.rounds)
        found[f"{recipe} step"] = context.bench("train", recipe, *words, *tokens, *where)
        size = ("--recipe", recipe, *words, "--lines", 512, "--batch", 128, "--repeats", 3)
        found[f"{recipe} search"] = context.bench("translate", *size, *where)
    return found


SECTIONS: dict[str, Section] = {
    "training": training,
    "step": step,
    "step-fp32": step_fp32,
    "step-small": step_small,
    "kernels": kernels,
    "memory": memory,
    "translate": translate,
    "translate-64": translate_64,
    "translate-one": translate_one,
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
