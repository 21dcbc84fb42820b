"""Comparison of compiled and plain torch functions of the search, and of parallel batches."""

import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.speed.context import Context
from benchmarks.speed.turns import in_turn
from heedful.bench.random_run import make_random_run, random_lines
from heedful.config.load import load_config
from heedful.experiments.process import torch_threads
from heedful.kernels.native import layers as native_layers
from heedful.search.settings import SearchOptions
from heedful.search.step import extend, extend_plainly
from heedful.translation.translator import Translator

_BEAM = 4
_FEW_ROWS = 64
_ANY_TOKENS = 1 << 40  # no limit, because the batch size is the number of sentences
_PLAIN = {"HEEDFUL_NATIVE": "0"}


def search(context: Context) -> dict[str, Any]:
    """Time searches with random weights, with and without compiled functions, in turns."""
    sizes = context.size({1: 1, 4: 2}, {1: 16, 32: 128, 64: 128})  # lines by batch
    searches = {
        f"{batch} at a time": _searches(batch, lines, context) for batch, lines in sizes.items()
    }
    with torch_threads(context.threads):
        parts = {"best continuations": _continuations(context), **_time_batches(context)}
    return {"searches": searches, **parts}


def _searches(batch: int, lines: int, context: Context) -> dict[str, Any]:
    """Measure each precision, compiled and plain, in turns; the profile is from the last round."""
    recipe, vocabulary, tokens = context.size(("tiny", 500, 4), ("paper-base", 8000, 14))
    words = (
        *("translate", "--recipe", recipe, "--vocabulary", vocabulary, "--source-length", 16),
        *("--tokens", tokens, "--lines", lines, "--batch", batch, "--repeats", 3),
        *("--only", "heedful", "--only", "heedful fp32", "--only", "heedful int8"),
    )
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(context.rounds):
        compiled = context.bench(*words, "--profile")
        plain = context.bench(*words, environment=_PLAIN)
        for way, report in (("compiled", compiled), ("plain", plain)):
            for measurement in report["measurements"]:
                key = way, measurement["precision"]
                seconds[key].append(measurement["seconds"]["median"])
    rows = []
    for measurement in compiled["measurements"]:
        precision = measurement["precision"]
        medians = {way: statistics.median(seconds[way, precision]) for way in ("compiled", "plain")}
        sentences = measurement["counts"]["sentences"]
        rows.append(
            {
                "precision": precision,
                **{way: sentences / spent for way, spent in medians.items()},
                "ratio": medians["plain"] / medians["compiled"],
                "profile": measurement["profile"],
                "products alone": measurement["products alone"],
            }
        )
    return {"product_gflops": compiled["machine"]["product_gflops"], "rows": rows}


def _continuations(context: Context) -> dict[str, Any]:
    """Time the choice of a beam's best continuations, for 64 sentences and for one."""
    vocabulary = context.size(500, 8000)
    times = {}
    for sentences in (64, 1):
        torch.manual_seed(1)
        totals = torch.randn(sentences, _BEAM)
        scores = torch.randn(sentences, _BEAM, vocabulary).log_softmax(-1)
        ways = {
            way: partial(function, totals, scores, 2 * _BEAM)
            for way, function in (("compiled", extend), ("plain", extend_plainly))
        }
        times[f"{sentences} at a time"] = in_turn(ways, context.size(2, 300))
    return times


def _time_batches(context: Context) -> dict[str, Any]:
    """Compare several parallel batches with single batches, and many rows at once with few rows."""
    recipe, vocabulary, lines = context.size(("tiny", 500, 4), ("paper-base", 8000, 256))
    batch, turns = context.size((2, 1), (32, 3 * context.rounds))
    texts = random_lines(vocabulary, 16, lines)
    options = SearchOptions(beam=_BEAM, max_length="14", stop="as-ctranslate2")
    batches, rows = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        run = make_random_run(Path(folder), load_config(recipe, ()), vocabulary)
        for precision in ("int8", "fp32"):
            translator = Translator.load(
                run.folder.path, precision=precision, threads=context.threads
            )
            translate = partial(translator.translate, options=options, batch_tokens=_ANY_TOKENS)
            batched = partial(translate, batch_lines=batch)
            ways = {
                "several": partial(batched, texts),
                "one": partial(_one_by_one, batched, texts, batch),
            }
            batches[precision] = in_turn(ways, turns)
            more = partial(translate, texts, batch_lines=2 * batch)
            rows[precision] = in_turn({"many": more, "few": partial(_by_few_rows, more)}, turns)
    return {"batches at a time": batches, "rows at a time": rows}


def _one_by_one(translate: Callable[[list[str]], object], texts: list[str], batch: int) -> None:
    """Translate one batch after the other."""
    for first in range(0, len(texts), batch):
        translate(texts[first : first + batch])


def _by_few_rows(translate: Callable[[], object]) -> None:
    """Translate with small blocks of rows in each thread."""
    with patch.object(native_layers, "ROWS_OF_A_BLOCK", _FEW_ROWS):
        translate()
