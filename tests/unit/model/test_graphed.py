"""Searches by recorded steps: on a processor a graph is a plain call, all else is the same code."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from heedful.kernels.operations import observe_operations, tensors_in
from heedful.model import graphed, static_cache
from heedful.model.contracts import DecoderInput
from heedful.model.graphed import GraphedModel, can_record, record_searches
from heedful.model.halves import Memory
from heedful.model.kv_cache import DecoderState
from heedful.model.static_cache import StaticState, power_of_two, sentence_bucket
from heedful.search.beam import beam_search
from heedful.search.ensemble import Ensemble
from heedful.search.settings import SearchOptions
from tests.support.exhaustive_search import batch_of_five, tiny
from tests.support.families import cases
from tests.support.models import SETTINGS, small

SEARCH = SearchOptions(beam=4, n_best=2)


def walk(model, source, steps, chosen):
    """The lane and log-probabilities of each step; beams change, and sentences leave."""
    listed = []
    with torch.inference_mode():
        state, tokens = model.start(model.encode(source)), torch.full((len(source),), 2)
        for number in range(steps):
            states, state = model.step(state, tokens)
            lane = state.lease.lane if isinstance(state, StaticState) else None
            listed.append((lane, model.log_probabilities(states).clone()))
            count = state.sentences
            kept = torch.arange(count) if number % 9 else torch.arange(count)[-max(1, count - 2) :]
            width = len(tokens) // count
            beam = torch.randint(width, (len(kept), 3), generator=chosen)
            rows = (kept.unsqueeze(1) * width + beam).flatten()
            state = state.select(rows, kept if len(kept) < count else None)
            tokens = torch.randint(4, 20, (len(rows),), generator=chosen)
    return listed


def sources(count, length, seed=3):
    generator = torch.Generator().manual_seed(seed)
    source = torch.randint(4, 20, (count, length), generator=generator)
    source[0, length // 2 :] = 0
    return source


def together(plain, steps, count=5, length=9):
    """Walk by the plain and the recorded model alike; return the lanes of the second."""
    recorded, source = GraphedModel(plain), sources(count, length)
    walks = (
        walk(model, source, steps, torch.Generator().manual_seed(5)) for model in (plain, recorded)
    )
    lanes = []
    for (_, ours), (lane, theirs) in zip(*walks, strict=True):
        torch.testing.assert_close(theirs, ours, atol=1e-5, rtol=0)
        lanes.append(lane)
    assert None not in lanes
    return lanes


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_recorded_steps_equal_plain_ones(settings):
    model = small(**settings)
    if can_record(model):
        together(model, 12)
    else:
        assert record_searches(model, torch.device("cuda")) is model


def test_lanes_follow_each_other_as_the_search_grows_and_shrinks():
    lanes = together(small(), 60, count=9)
    sizes = [lane.sizes for lane in lanes]
    assert sizes[0] == (16, 64, 16)
    assert [one.sentences for one in sizes] == sorted(one.sentences for one in sizes)[::-1]
    assert sizes[-1].sentences < 4
    assert max(one.slots for one in sizes) > 64
    # a full lane whose slots are mostly unused stays, and is cleared up
    assert len({id(lane) for lane in lanes}) == len({*sizes}) < 60 * 3 // 64 + 6


def test_buckets_are_few_and_not_much_larger_than_their_contents():
    for count in range(1, 2000):
        assert count <= sentence_bucket(count) < max(2 * count, 2)
        assert count <= power_of_two(count) < max(2 * count, 2)
    assert len({sentence_bucket(count) for count in range(1, 1025)}) <= 17
    assert [sentence_bucket(count) for count in (0, 1, 3, 17, 25, 97)] == [1, 1, 4, 24, 32, 128]


def test_the_next_search_takes_the_same_lane_without_a_trace_of_the_last():
    model, source = GraphedModel(small()), sources(3, 9)
    with torch.inference_mode():
        state = model.start(model.encode(source))
        model.step(state, torch.tensor([2, 2, 2]))
        lane = state.lease.lane
        for part in (*lane.own, *lane.memory):
            part.keys.fill_(float("nan"))  # such as of a damaged model
        del state
        assert len(model.lanes) == 1
    first = [scores for _, scores in walk(model, source, 4, torch.Generator())]
    again = [scores for _, scores in walk(small(), source, 4, torch.Generator())]
    for ours, theirs in zip(first, again, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    assert len({id(one) for one, _ in model.lanes._free}) == len(model.lanes)
    assert any(one is lane for one, _ in model.lanes._free)


def test_only_the_lanes_last_used_are_kept(monkeypatch):
    monkeypatch.setattr(static_cache, "_MOST_LANES", 2)
    model = GraphedModel(small())
    for length in (5, 20, 40):
        beam_search(model, sources(1, length), [3], SEARCH)
    assert [lane.sizes.source for lane, _ in model.lanes._free] == [32, 64]
    monkeypatch.setattr(static_cache, "_MOST_BYTES", 0)
    beam_search(model, sources(1, 5), [3], SEARCH)
    assert len(model.lanes) == 0


def outputs(model, source, limits):
    found = beam_search(model, source, limits, SEARCH)
    return [[(one.tokens, round(one.score, 4)) for one in hypotheses] for hypotheses in found]


def test_threads_that_search_at_once_do_not_meet():
    plain = tiny(1, 12)
    recorded = GraphedModel(plain)
    batches = [batch_of_five(seed) for seed in range(8)]
    expected = [outputs(plain, *batch) for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda batch: outputs(recorded, *batch), batches * 4))
    assert found == expected * 4


def test_a_model_may_be_a_member_of_an_ensemble_twice():
    plain, (source, limits) = tiny(1, 12), batch_of_five(1)
    recorded = GraphedModel(plain)
    expected = outputs(Ensemble([plain, plain]), source, limits)
    assert outputs(Ensemble([recorded, recorded]), source, limits) == expected


@pytest.mark.parametrize("bound", ["_MOST_SOURCE", "_MOST_SENTENCES"])
def test_what_no_bucket_holds_is_searched_plainly(bound, monkeypatch):
    monkeypatch.setattr(graphed, bound, 4)
    plain, (source, limits) = tiny(1, 12), batch_of_five(1)
    recorded = GraphedModel(plain)
    with torch.inference_mode():
        assert isinstance(recorded.start(recorded.encode(source)), DecoderState)
    assert outputs(recorded, source, limits) == outputs(plain, source, limits)
    assert len(recorded.lanes) == 0


def test_gradients_and_parts_of_a_task_take_the_plain_way():
    model, source = GraphedModel(small()), sources(2, 5)
    state = model.start(model.encode(source))
    assert isinstance(state, DecoderState)
    states, _ = model.step(state, torch.tensor([2, 2]))
    assert model.log_probabilities(states).requires_grad

    class OfATask(torch.nn.Module, DecoderInput):
        """Adds nothing, but could."""

    model.read_with("of_a_task", OfATask())
    with torch.inference_mode():
        assert isinstance(model.start(model.encode(source)), DecoderState)


REFUSED = cases(
    {
        "recurrent": {"encoder": "recurrent", "decoder": "recurrent"},
        "convs2s": {
            "encoder": "convs2s",
            "decoder": "convs2s",
            "convs2s": {"encoder_layers": "(16,3)", "decoder_layers": "(16,3)"},
        },
        "experts": {"experts": {"count": 4}},
        "batch norm": {"norm_kind": "batch"},
        "window": {"attention": {"window": 3}},
        "fastformer": {"attention": {"decoder": "fastformer-linear"}},
    }
)


@pytest.mark.parametrize("settings", REFUSED.values(), ids=REFUSED)
def test_steps_that_are_not_known_are_not_recorded(settings):
    model = small(**settings)
    assert not can_record(model)
    assert record_searches(model, torch.device("cuda")) is model


def test_a_model_on_a_gpu_is_recorded_unless_kernels_are_plain(monkeypatch):
    model = small()
    assert record_searches(model, torch.device("cpu")) is model
    assert isinstance(record_searches(model, torch.device("cuda")), GraphedModel)
    monkeypatch.setattr(graphed, "kernels_choice", lambda: "plain")
    assert record_searches(model, torch.device("cuda")) is model


def test_a_recorded_model_is_copied_without_its_lanes():
    plain, (source, limits) = tiny(1, 12), batch_of_five(1)
    model = GraphedModel(plain)
    expected = outputs(model, source, limits)
    assert len(model.lanes) > 0
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert len(other.lanes) == 0
        assert outputs(other, source, limits) == expected


def on_one_device(function, arguments):
    """Refuse tensors of the host in the work of a device, whose numbers nobody may read."""
    positional, named = arguments
    out = function(*positional, **named)
    for tensor in tensors_in((positional, named, out)):
        assert tensor.device.type == "meta", function
    return out


def on_no_device(shape, dtype=torch.long):
    return torch.zeros(shape, dtype=dtype, device="meta")


def test_a_step_reads_nothing_of_the_host_and_tells_it_nothing():
    model = GraphedModel(small().to("meta"))
    mask = on_no_device((5, 1, 1, 7), torch.bool)
    model.target_positions(0, 1)  # the table is computed by the host, once
    with torch.inference_mode(), observe_operations(on_one_device):
        state = model.start(Memory(on_no_device((5, 7, 16), torch.float32), mask))
        tokens = on_no_device(5)
        for _ in range(4):
            states, state = model.step(state, tokens)
            assert model.log_probabilities(states).shape == (len(tokens), 20)
            tokens = on_no_device(15)
            state = state.select(on_no_device(15))
        state = state.select(on_no_device(6), on_no_device(2))
        model.step(state, on_no_device(6))
    assert state.lease.lane.sizes.sentences == 2
    with pytest.raises(AssertionError), observe_operations(on_one_device):
        on_no_device(3).index_select(0, torch.zeros(2, dtype=torch.long))
