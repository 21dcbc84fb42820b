import threading

import pytest
import torch

from heedful.machine.threads import map_in_threads


@pytest.fixture
def four_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


def test_calls_run_beside_each_other_and_results_come_in_order(four_threads):
    meet = threading.Barrier(2, timeout=60)  # nobody passes it alone

    def call(number):
        meet.wait()
        return number, torch.get_num_threads()

    found = list(map_in_threads(call, range(6), 2))
    assert found == [(number, 2) for number in range(6)]


def test_the_caller_and_threads_begun_later_have_all_threads_again(four_threads):
    assert list(map_in_threads(lambda _: torch.get_num_threads(), range(3), 3)) == [1, 1, 1]
    assert torch.get_num_threads() == 4
    later = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert later == [4]


def test_after_a_failure_no_more_calls_begin(four_threads):
    begun = []
    goes_on = threading.Event()

    def call(number):
        begun.append(number)
        if number == 0:
            raise ValueError("the first fails")
        goes_on.wait(60)

    found = map_in_threads(call, range(100), 2)
    threading.Timer(0.2, goes_on.set).start()  # by then the failure is known
    with pytest.raises(ValueError, match="the first fails"):
        next(found)
    assert len(begun) < 100
    assert torch.get_num_threads() == 4
