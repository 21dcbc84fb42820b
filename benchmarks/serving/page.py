"""The page `docs/results/serving.md`."""

from benchmarks.report import ResultPage
from heedful.experiments.page import markdown
from heedful.experiments.record import Record


def body(record: Record) -> str:
    """Write the results."""
    measured = record.measurements
    load, stop, flat = measured["load"], measured["stop"], measured["memory"]
    rows = {
        "requests without an answer": _counts(load["statuses"], without="200"),
        "answers that differ from the command line's": (
            f"{load['other']} of {load['answers']} ({load['equal']} with its text, "
            f"{load['close']} with another whose score is within {measured['score']:g})"
        ),
        f"throughput, of `translate` with {load['clients']} lines at a time": (
            f"{load['rate']:.2f} of {load['rate_before']:.2f} and {load['rate_after']:.2f} "
            f"sentences/s: {load['share']:.2f}; by processor time {load['processor_share']:.2f}"
        ),
        "accepted requests lost at a stop": (
            f"{_counts(stop['before'], without='200')} of {sum(stop['before'].values())}"
        ),
        f"memory over {flat['requests']:,} requests": (
            f"{flat['growth']:.3f} of what it was in the second quarter"
        ),
    }
    sizes = ", ".join(f"{memory / (1 << 20):.0f}" for memory in flat["memory"])
    return f"""\
{markdown([("what", "measured"), *rows.items()])}

## {load["clients"]} clients for {load["seconds"]:.0f} seconds

A model of the recipe `{measured["shape"]}` with random weights and {measured["vocabulary"]:,}
subwords, sentences of some {measured["words"]} words, beam 4, fp32. Each client asks
`/v1/translate` for one sentence, and for the next as soon as it has the answer.
Half of the {load["answers"]:,} answers came within {load["p50"]:.2f} s,
99 of 100 within {load["p99"]:.2f} s.
The server held {_mib(load["memory"])}, at most {_mib(load["peak"])}.
`heedful translate` was given the same sentences before and after, in the same order,
{load["clients"]} at a time; with each it waits a twentieth of a second for more. What starting and
loading takes is not counted.

## Told to stop

After the signal its clients got {_counts(stop["after"])}; it ended {stop["seconds"]:.1f} s
after the signal, with {stop["code"]}. A request counts as accepted if it was begun before.

## {flat["requests"]:,} requests

A tiny model; text, lists, HTML, streams, detection, and one in five that cannot be answered:
{_counts(flat["statuses"])}, in {flat["seconds"]:.0f} s. Memory, in MiB, after each fortieth part:
{sizes}.
"""


def _counts(statuses: dict[str, int], without: str = "") -> str:
    """Write how often each status came."""
    shown = {status: count for status, count in sorted(statuses.items()) if status != without}
    return ", ".join(f"{count:,} times {status}" for status, count in shown.items()) or "none"


def _mib(count: int) -> str:
    """Write bytes."""
    return f"{count / (1 << 20):,.0f} MiB"


PAGE = ResultPage("serving", "The server under load", {"serving": body})
