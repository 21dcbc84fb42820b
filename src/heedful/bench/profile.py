"""Where the time of some work goes, by what torch executes."""

from collections.abc import Callable

from torch.profiler import ProfilerActivity, profile

_SHOWN = 14


def shares(work: Callable[[], object]) -> dict[str, float]:
    """
    Find out what the processor spends its time on.

    Parameters
    ----------
    work : callable
        Done once, a little slower than without being watched.

    Returns
    -------
    dict of str to float
        Share of the time of each operation of torch by itself, the largest first; the rest as
        `others`.

    Notes
    -----
    On a GPU this is what it takes to start the work there.
    """
    with profile(activities=[ProfilerActivity.CPU]) as found:
        work()
    spent = {one.key: float(one.self_cpu_time_total) for one in found.key_averages()}
    whole = sum(spent.values()) or 1.0
    ordered = sorted(spent.items(), key=lambda item: -item[1])
    named = {name.removeprefix("aten::"): time / whole for name, time in ordered[:_SHOWN]}
    return {**named, "others": sum(time for _, time in ordered[_SHOWN:]) / whole}
