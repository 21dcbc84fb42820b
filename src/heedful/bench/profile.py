"""A profile of the time of each torch operator."""

from collections.abc import Callable

from torch.profiler import ProfilerActivity, profile

_SHOWN = 14


def shares(work: Callable[[], object]) -> dict[str, float]:
    """
    Profile what share of the time each operator takes.

    Returns the shares of the slowest torch operators, each without the operators that it calls, in
    descending order. `others` is the share of all other operators.

    With a GPU, the shares refer only to the CPU time for launching kernels.
    """
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        work()
    spent = {event.key: float(event.self_cpu_time_total) for event in profiler.key_averages()}
    total = sum(spent.values()) or 1.0
    ordered = sorted(spent.items(), key=lambda item: -item[1])
    named = {name.removeprefix("aten::"): time / total for name, time in ordered[:_SHOWN]}
    return {**named, "others": sum(time for _, time in ordered[_SHOWN:]) / total}
