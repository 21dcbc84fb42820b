"""
The server benchmark: 64 clients for a minute, 20,000 requests, a stop under load.

    python -m benchmarks.serving [--small]

Needs the extra `serve`. Writes `docs/results/serving.json` and what is written from it; with
--small (a tiny model, seconds) the page is printed instead.
"""

import argparse
from dataclasses import asdict
from typing import Any

from benchmarks.figures import rewrite
from benchmarks.report import commit, keep
from benchmarks.serving.measure import (
    SCORE,
    WORDS,
    Loaded,
    in_folder,
    measure_load,
    measure_memory,
    measure_stop,
)
from benchmarks.serving.page import body

VOCABULARY = 8000


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="try it: a tiny model, seconds")
    small = parser.parse_args().small
    measured = commit()
    shape, vocabulary, seconds = ("tiny", 200, 5.0) if small else ("base", VOCABULARY, 60.0)
    kept, run = in_folder(shape, vocabulary)
    tidy, tiny = in_folder("tiny", 200)
    with kept, tidy:
        loaded = measure_load(run, vocabulary, seconds=seconds, lines=64 if small else 256)
        stopped = measure_stop(run, vocabulary, seconds=seconds / 3)
        flat = measure_memory(tiny, 200, requests=1000 if small else 20_000)
    found = {
        "shape": shape,
        "vocabulary": vocabulary,
        "words": WORDS,
        "score": SCORE,
        "load": summary(loaded),
        "stop": asdict(stopped),
        "memory": {**asdict(flat), "growth": flat.growth},
    }
    if not small:
        keep("serving", found, measured)
        rewrite()
    print(body(found))


def summary(loaded: Loaded) -> dict[str, Any]:
    """Replace the texts of the command line by rates."""
    plain = {name: value for name, value in vars(loaded).items() if name not in ("before", "after")}
    return plain | {
        "rate": loaded.rate,
        "rate_before": loaded.before.rate,
        "rate_after": loaded.after.rate,
        "share": loaded.share,
        "processor_share": loaded.processor_share,
    }


if __name__ == "__main__":
    main()
