"""A server under load answers everybody, as the command line does, and does not grow."""

import pytest
from benchmarks.serving.__main__ import VOCABULARY
from benchmarks.serving.measure import make_run, measure_load, measure_memory, measure_stop

# Of the share of a quiet machine. Others that come or go in the middle of a measurement change its
# share more than this, so it is taken again then.
_BUSY, _TIMES = 0.1, 3
# A server answers nearly as fast as the command line, and its memory stays flat.
LEAST_SHARE, MOST_GROWTH = 0.95, 1.05


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A model of the paper's base size."""
    return make_run(tmp_path_factory.mktemp("base") / "run", "base", VOCABULARY)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("tiny") / "run", "tiny", 200)


@pytest.mark.timeout(1200)
def test_sixty_four_clients_for_a_minute(base):
    least = LEAST_SHARE - _BUSY
    for _ in range(_TIMES):
        loaded = measure_load(base, VOCABULARY, clients=64, seconds=60)
        print(f"{loaded['share']:.2f}, by processor time {loaded['processor_share']:.2f}")
        mebibytes = loaded["peak"] / (1 << 20)
        print(f"p50 {loaded['p50']:.2f} s, p99 {loaded['p99']:.2f} s, {mebibytes:.0f} MiB")
        assert loaded["statuses"] == {"200": loaded["answers"]}
        assert loaded["answers"] >= 64
        assert loaded["other"] == 0
        # A machine that others use meanwhile says nothing by the clock.
        by_clock = loaded["share"] >= least or not loaded["steady"]
        if loaded["processor_share"] >= least and by_clock:
            break
    assert loaded["processor_share"] >= least
    assert by_clock, (loaded["rate"], loaded["rate_before"], loaded["rate_after"])


@pytest.mark.timeout(600)
def test_told_to_stop_in_the_middle_no_accepted_request_is_lost(base):
    stopped = measure_stop(base, VOCABULARY, clients=64, seconds=20)
    assert stopped["before"].keys() == {"200"}
    assert sum(stopped["before"].values()) >= 64
    assert stopped["code"] == 0


@pytest.mark.timeout(1800)
def test_memory_is_flat_over_twenty_thousand_requests(tiny):
    flat = measure_memory(tiny, 200, requests=20_000)
    assert flat["statuses"] == {"200": 16_000, "400": 4_000}
    assert flat["growth"] <= MOST_GROWTH, flat["memory"]
