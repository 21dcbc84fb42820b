import math

import pytest
import torch

from heedful.settings.registries import METRICS
from heedful.training.state import Counters, LogSums, StepTotals, TrainState


def test_totals_of_a_step_pass_through_a_tensor_unchanged() -> None:
    totals = StepTotals(*map(float, range(1, len(StepTotals._fields) + 1)))
    assert StepTotals.from_tensor(totals.as_tensor()) == totals
    doubled = totals.as_tensor() + totals.as_tensor()  # as two ranks add them
    assert StepTotals.from_tensor(doubled) == totals.plus(totals)
    large = StepTotals(target_tokens=float(2**53))  # beyond fp32
    assert StepTotals.from_tensor(large.as_tensor()).target_tokens == 2**53
    assert totals.as_tensor().dtype == torch.float64


def test_a_step_counts_once_with_its_tokens() -> None:
    counters = Counters(step=4, position=2, target_tokens=10, flops=10**19)
    counters.add(StepTotals(target_tokens=5.0, flops=7e18))
    expected = Counters(step=5, position=3, target_tokens=15, flops=17 * 10**18)
    assert counters == expected


def test_operations_are_not_counted_from_the_middle_of_a_run() -> None:
    old = Counters.from_dict({"step": 4, "position": 2, "cross_pairs": 7, "seconds": 1.0})
    for counters, counted in ((old, 0), (Counters(), 8)):
        for _ in range(2):
            counters.add(StepTotals(flops=4.0))
        assert counters.flops == counted


def test_padding_is_its_share_of_the_operations() -> None:
    sums = LogSums().plus(StepTotals(flops=30.0, needed_flops=20.0), 1.0)
    sums = sums.plus(StepTotals(flops=10.0, needed_flops=10.0), 1.0)
    assert sums.padding == 0.25
    assert LogSums().padding == 0.0  # of a model that counts nothing


def saved(**changes: object) -> dict[str, object]:
    counters = Counters(step=3, source_tokens=5, flops=10**20, seconds=1.5).to_dict()
    best = [{"step": 2, "valid_loss": 1.5}]
    return {"counters": counters, "step": 3, "best": best, "without_better": 0} | changes


def test_a_state_is_read_from_a_checkpoint() -> None:
    counters = TrainState.from_dict(saved()).counters
    assert (counters.step, counters.flops, counters.seconds) == (3, 10**20, 1.5)
    older = TrainState.from_dict(saved(counters={"step": 3, "seconds": 1.5, "cross_pairs": 7.5}))
    assert older.counters == Counters(step=3, seconds=1.5)


def test_the_validation_to_compare_with_is_the_best_one_in_an_older_state() -> None:
    best = {"step": 2, "valid_loss": 1.5}
    assert TrainState.from_dict(saved()).best_regular == best
    assert TrainState.from_dict(saved(best=[])).best_regular is None
    assert TrainState.from_dict(saved(best_regular=None)).best_regular is None
    other = {"step": 1, "valid_loss": 2.5}
    assert TrainState.from_dict(saved(best_regular=other)).best_regular == other


@pytest.mark.parametrize(
    "changes",
    [
        {"step": 1.5, "counters": {"step": 1.5}},
        {"step": 3.0, "counters": {"step": 3.0}},
        {"step": True, "counters": {"step": True}},
        {"counters": {"step": 3, "epoch": 0.5}},
        {"counters": {"step": 3, "source_tokens": 2.5}},
        {"counters": {"step": 3, "seconds": math.inf}},
        {"best": [{"step": 2.5, "valid_loss": 1.5}]},
        {"best_regular": {"step": 2}},
        {"best_regular": {}},
        {"without_better": 0.5},
        {"decays": 1.5},
    ],
)
def test_counts_are_whole_numbers(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="counters, best, without_better or since_log are invalid"):
        TrainState.from_dict(saved(**changes))


@pytest.mark.parametrize("name", METRICS)
def test_what_is_not_a_number_is_never_the_best(name: str) -> None:
    key, state = METRICS[name].key, TrainState()
    for step, value in enumerate((math.nan, 2.0, math.nan, 1.0, math.nan)):
        state.remember({"step": step, "valid_loss": 3.0, key: value}, 3, name)
    first, second, third = [entry[key] for entry in state.best]
    assert [first, second] == sorted((1.0, 2.0), reverse=METRICS[name].higher_is_better)
    assert math.isnan(third)
    assert state.without_better == (3 if METRICS[name].higher_is_better else 1)
