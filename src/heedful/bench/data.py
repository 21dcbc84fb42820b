"""`heedful bench data`: from text to batches."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heedful.bench.measurement import SpeedMeasurement, SpeedReport
from heedful.bench.systems import own_system
from heedful.config.load import load_config
from heedful.data.toy_grammar.corpus import sample_pairs
from heedful.errors import TextError
from heedful.machine.devices import describe_machine, resolve_threads

_EMBEDDED_PAIRS = 20_000


def bench_data(
    recipe: str,
    settings: Sequence[str] = (),
    *,
    source: Sequence[str] = (),
    target: Sequence[str] = (),
    repeats: int = 5,
    threads: int = 0,
) -> SpeedReport:
    """
    Time each stage between text and batches.

    `source, target`: line-aligned text; sentences of the embedded grammar if empty.

    Other toolkits are not measured, because they divide the work into other stages.
    """
    if bool(source) != bool(target):
        raise TextError("--source and --target must be given together, but got only one of them.")
    config = load_config(recipe, settings)
    threads = resolve_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        files = {"source": list(source), "target": list(target)}
        if not source:
            files = _write_toy_corpus(Path(folder))
        request: dict[str, Any] = {
            "task": "data",
            "settings": config.to_dict(),
            **files,
            "repeats": repeats,
            "threads": threads,
        }
        answer = own_system("").run(request)
    measurements = tuple(
        SpeedMeasurement(stage, "", tuple(seconds), {"lines": answer["lines"]}, None, None, memory)
        for memory in (answer["memory"],)
        for stage, seconds in answer["stages"].items()
    )
    what = {
        "recipe": config.recipe,
        "settings": " ".join(settings) or "as they are",
        "pairs": answer["lines"],
        "text": " ".join([*source, *target]) or "the embedded grammar",
    }
    machine = {**describe_machine(), "threads": threads, "device": "cpu"}
    return SpeedReport(what, machine, measurements, compared=False)


def _write_toy_corpus(folder: Path) -> dict[str, list[str]]:
    """Write sentences of the embedded grammar."""
    files: dict[str, list[str]] = {}
    pairs = sample_pairs(_EMBEDDED_PAIRS, seed=1)
    for number, (side, language) in enumerate((("source", "en"), ("target", "fr"))):
        path = folder / f"text.{language}"
        path.write_text("".join(f"{pair[number]}\n" for pair in pairs), encoding="utf-8")
        files[side] = [str(path)]
    return files
