"""
The server under load: 64 clients for a minute, 20,000 requests, a stop in the middle.

    python -m benchmarks.serving [--small]

Needs the extra `serve`. Writes `docs/results/serving.md`; with --small (a tiny model, seconds) the
page is printed instead.
"""

import argparse

from benchmarks.report import commit, write
from benchmarks.serving.measure import (
    SCORE,
    WORDS,
    Flat,
    Loaded,
    Stopped,
    in_folder,
    measure_load,
    measure_memory,
    measure_stop,
)

TITLE = "The server under load"
VOCABULARY = 8000
LEAST_SHARE = 0.8
MOST_GROWTH = 1.05


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
    body = page(shape, vocabulary, loaded, stopped, flat)
    if small:
        print(body)
    else:
        print(write("serving", TITLE, body, measured))


def page(shape: str, vocabulary: int, loaded: Loaded, stopped: Stopped, flat: Flat) -> str:
    """Write what was found, beside what is asked of it."""
    answered = loaded.statuses == {"200": loaded.answers}
    lost = {status: count for status, count in stopped.before.items() if status != "200"}
    rows = [
        ("requests without an answer", _counts(loaded.statuses, without="200"), "none", answered),
        (
            "answers that differ from the command line's",
            f"{loaded.other} of {loaded.answers} ({loaded.equal} with its text, {loaded.close} "
            f"with another of its score)",
            f"none: the same text, or a score within {SCORE:g}",
            loaded.other == 0,
        ),
        (
            "throughput, of `translate` in batches",
            f"{loaded.rate:.2f} of {loaded.before.rate:.2f} and {loaded.after.rate:.2f} "
            f"sentences/s: {loaded.share:.2f}; by processor time {loaded.processor_share:.2f}",
            f"at least {LEAST_SHARE}",
            loaded.share >= LEAST_SHARE,
        ),
        (
            "accepted requests lost at a stop",
            f"{_counts(stopped.before, without='200')} of {sum(stopped.before.values())}",
            "none",
            not lost and stopped.code == 0,
        ),
        (
            f"memory over {flat.requests:,} requests",
            f"{flat.growth:.3f} of what it was in the second quarter",
            f"at most {MOST_GROWTH}",
            flat.growth <= MOST_GROWTH,
        ),
    ]
    lines = [f"| {a} | {b} | {c} | {'reached' if d else 'missed'} |" for a, b, c, d in rows]
    table = "\n".join(["| what | found | asked | |", "| --- | --- | --- | --- |", *lines])
    return f"""\
```text
python -m benchmarks.serving
```

{table}

## {loaded.clients} clients for {loaded.seconds:.0f} seconds

A model of the recipe `{shape}` with random weights and {vocabulary:,} subwords, sentences of some
{WORDS} words, beam 4, fp32. Each client asks `/v1/translate` for one sentence, and for the next as
soon as it has the answer. Half of the {loaded.answers:,} answers came within {loaded.p50:.2f} s,
99 of 100 within {loaded.p99:.2f} s. The server held {_mib(loaded.memory)}, at most
{_mib(loaded.peak)}. `heedful translate` was given the same sentences before and after, all at once;
what starting and loading takes is not counted.

## Told to stop

After the signal its clients got {_counts(stopped.after)}; it ended {stopped.seconds:.1f} s
after the signal, with {stopped.code}. A request counts as accepted if it was begun before.

## {flat.requests:,} requests

A tiny model; text, lists, HTML, streams, detection, and one in five that cannot be answered:
{_counts(flat.statuses)}, in {flat.seconds:.0f} s. Memory, in MiB, after each fortieth part:
{", ".join(f"{memory / (1 << 20):.0f}" for memory in flat.memory)}.
"""


def _counts(statuses: dict[str, int], without: str = "") -> str:
    """Write how often each status came."""
    kept = {status: count for status, count in sorted(statuses.items()) if status != without}
    return ", ".join(f"{count:,} times {status}" for status, count in kept.items()) or "none"


def _mib(count: int) -> str:
    """Write bytes."""
    return f"{count / (1 << 20):,.0f} MiB"


if __name__ == "__main__":
    main()
