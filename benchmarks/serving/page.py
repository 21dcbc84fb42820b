"""The page `docs/results/serving.md`."""

from benchmarks.report import ResultPage
from heedful.experiments.page import fold, markdown
from heedful.experiments.record import Record


def body(record: Record) -> str:
    """Format the results as Markdown."""
    measured = record.measurements
    load, stop, flat = measured["load"], measured["stop"], measured["memory"]
    rows = {
        "requests without an answer": _counts(load["statuses"], without="200"),
        "answers that differ from the command line's": (
            f"{load['other']} of {load['answers']} ({load['equal']} have the same text, "
            f"{load['close']} another text with a score within {measured['score']:g})"
        ),
        f"throughput compared with `translate`, {load['clients']} lines at a time": (
            f"{load['rate']:.2f} sentences/s compared with {load['rate_before']:.2f} before and "
            f"{load['rate_after']:.2f} after: {load['share']:.2f} times, by processor time "
            f"{load['processor_share']:.2f} times"
        ),
        "accepted requests lost at a stop": (
            f"{_counts(stop['before'], without='200')} of {sum(stop['before'].values())}"
        ),
        f"memory in the second half of {flat['requests']:,} requests": (
            f"{flat['growth']:.3f} times that in the second quarter"
        ),
    }
    sizes = ", ".join(f"{memory / (1 << 20):.0f}" for memory in flat["memory"])
    parts = [
        "The table shows how `heedful serve` responds to many clients, a stop signal, and many "
        "requests.",
        markdown([("what", "measured"), *rows.items()]),
        f"## {load['clients']} clients for {load['seconds']:.0f} seconds",
        f"The model has the size of the paper's {measured['shape']} model, random weights and "
        f"{measured['vocabulary']:,} subwords. It translates sentences of about "
        f"{measured['words']} words with beam 4 in fp32. Each client sends one sentence at a time "
        f"to `/v1/translate`. Half of the {load['answers']:,} answers arrived within "
        f"{load['p50']:.2f} s, and 99 of 100 within {load['p99']:.2f} s. The server used "
        f"{_mib(load['memory'])} of memory at the end and {_mib(load['peak'])} at most. `heedful "
        f"translate` translated the same sentences before and after this test, {load['clients']} "
        "at a time; its startup time is not counted.",
        "## A stop signal under load",
        f"For requests that began after the signal, the results were {_counts(stop['after'])}. "
        f"The server ended {stop['seconds']:.1f} s after the signal, with exit code "
        f"{stop['code']}. A request counts as accepted if it began before the signal.",
        f"## {flat['requests']:,} requests",
        "The requests to a tiny model contain texts, lists or HTML, or ask for streams or language "
        f"detection. One in five requests is invalid. In {flat['seconds']:.0f} s, requests ended "
        f"with {_counts(flat['statuses'])}.",
        fold("Memory in MiB after each fortieth of the requests", [sizes]),
    ]
    return "\n\n".join(parts)


def _counts(statuses: dict[str, int], without: str = "") -> str:
    """Format how often each status occurred."""
    shown = {status: count for status, count in sorted(statuses.items()) if status != without}
    return " and ".join(f"{status} ({count:,} times)" for status, count in shown.items()) or "none"


def _mib(count: int) -> str:
    """Format bytes in MiB."""
    return f"{count / (1 << 20):,.0f} MiB"


PAGE = ResultPage("serving", "The server under load", {"serving": body})
