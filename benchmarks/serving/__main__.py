"""
The server benchmark: 64 clients for a minute, 20,000 requests, a stop under load.

    python -m benchmarks.serving [--small]

Needs the extra `serve`. Writes `docs/results/serving.json` and builds the page from it. `--small`
prints the measurements of a tiny model instead, which takes seconds.
"""

from benchmarks.report import arguments
from benchmarks.serving.measure import (
    SCORE,
    WORDS,
    in_folder,
    measure_load,
    measure_memory,
    measure_stop,
)
from benchmarks.serving.page import PAGE

VOCABULARY = 8000


def main() -> None:
    """Measure and write the page."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--small", action="store_true", help="only try the benchmark, with a tiny model"
    )
    options = parser.parse_args()
    shape, vocabulary, seconds = ("base", VOCABULARY, 60.0)
    lines, requests = 256, 20_000
    if options.small:
        shape, vocabulary, seconds, lines, requests = "tiny", 200, 5.0, 64, 1000
    with in_folder(shape, vocabulary) as run, in_folder("tiny", 200) as tiny:
        loaded = measure_load(run, vocabulary, seconds=seconds, lines=lines)
        stopped = measure_stop(run, vocabulary, seconds=seconds / 3)
        flat = measure_memory(tiny, 200, requests=requests)
    measurements = {
        "shape": shape,
        "vocabulary": vocabulary,
        "words": WORDS,
        "score": SCORE,
        "load": loaded,
        "stop": stopped,
        "memory": flat,
    }
    if options.small:
        print(measurements)
    else:
        PAGE.keep("serving", measurements, options.commit)


if __name__ == "__main__":
    main()
