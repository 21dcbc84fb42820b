"""`heedful bench data`: the speed of each stage from text to batches."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heedful.bench.measurement import SpeedMeasurement, SpeedReport
from heedful.bench.systems import own_system
from heedful.config.load import load_config
from heedful.data.text_parts import side_files, write_lines
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

    `source, target`: line-aligned text; sentences of the built-in grammar if empty.

    Other toolkits are not measured, because they divide the work into different stages.
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
        "text": " ".join([*source, *target]) or "the built-in grammar",
    }
    machine = {**describe_machine(), "threads": threads, "device": "cpu"}
    return SpeedReport(what, machine, measurements, compared=False)


def _write_toy_corpus(folder: Path) -> dict[str, list[str]]:
    """Write sentences of the built-in grammar."""
    files = side_files({"text": sample_pairs(_EMBEDDED_PAIRS, seed=1)}, ("en", "fr"))
    write_lines(folder, files, "the grammar")
    return {
        side: [str(folder / name)] for side, name in zip(("source", "target"), files, strict=True)
    }
