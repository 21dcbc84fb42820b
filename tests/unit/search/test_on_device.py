"""Searches whose choices stay on the device find what the host finds."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
import torch

from heedful.kernels.operations import observe_operations
from heedful.model.graphed import GraphedModel
from heedful.model.halves import Memory
from heedful.search import choices as choices_module
from heedful.search import on_device
from heedful.search import search as search_module
from heedful.search.beam import beam_search
from heedful.search.choices import ChoicePlan
from heedful.search.greedy import greedy_search
from heedful.search.on_device import DeviceSearch, search_on_device
from heedful.search.rules import ForcedEos, MinLength, NoRepeatNgram, Renormalization
from heedful.search.settings import Sampling, SearchOptions
from tests.support.exhaustive_search import END, PENALTIES, RULES, batch_of_five, tiny
from tests.support.models import small
from tests.unit.model.test_graphed import on_no_device, on_one_device

STOPS = ["when-none-can-win", "when-beam-finished", "as-transformers"]
POLICIES = ["cut", "keep", "force", "end"]


def rules_of(policy, limits):
    """Every rule that the device applies."""
    if policy == "cut":
        return RULES
    forced = [ForcedEos(limits, END, is_free=policy == "end")] if policy != "keep" else []
    return [*RULES, MinLength(2, END), *forced, Renormalization()]


def is_same(expected, found):
    """The same hypotheses in the same order; numbers may differ in their last digits."""
    for ours, theirs in zip(expected, found, strict=True):
        assert [(h.tokens, h.ended) for h in theirs] == [(h.tokens, h.ended) for h in ours]
        for one, other in zip(ours, theirs, strict=True):
            assert other.score == pytest.approx(one.score, abs=1e-5)
            assert other.log_probabilities == pytest.approx(one.log_probabilities, abs=1e-5)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("stop", STOPS)
def test_beams_are_those_of_the_host(stop, policy):
    # each combination with one penalty and one length: any three values of six settings meet
    row, column = STOPS.index(stop), POLICIES.index(policy)
    for seed, (place, twice) in enumerate(product(range(3), range(2))):
        penalty = PENALTIES[(row + column + place) % len(PENALTIES)]
        longer = (1, 4)[(column + place + twice) % 2]
        beam, ends = (1, 2, 5)[place], ("beam", "twice")[twice]
        model = tiny(seed, 12)
        source, limits = batch_of_five(seed)
        limits = [longer * limit for limit in limits]
        options = SearchOptions(
            beam=beam,
            n_best=1 + seed % beam,
            stop=stop,
            length_limit_policy=policy,
            eos_candidates=ends,
            length_penalty=str(penalty),
        )
        rules = rules_of(policy, limits)
        expected = beam_search(model, source, limits, options, rules)
        is_same(expected, search_on_device(GraphedModel(model), source, limits, options, rules))


@pytest.mark.parametrize("policy", POLICIES)
def test_greedy_searches_are_those_of_the_host(policy):
    for seed in range(8):
        model = tiny(seed, 12)
        source, limits = batch_of_five(seed)
        rules = rules_of(policy, limits)
        stop = ("when-none-can-win", "as-opennmt")[seed % 2]
        options = SearchOptions(beam=1, length_penalty="power:1", stop=stop)
        expected = greedy_search(model, source, limits, options, rules)
        recorded = GraphedModel(model)
        found = search_on_device(recorded, source, limits, options, rules, greedy=True)
        is_same([[one] for one in expected], found)


class OfTable(GraphedModel):
    """Its next token depends on the newest one alone, by a table of log-probabilities."""

    def decode_step(self, lane, step):
        step.states = self.table[step.tokens.flatten()]

    def project_step(self, step):
        step.scores = step.states.clone()


def of_table(seed, vocabulary=12):
    """Few different numbers, so that most candidates have rivals of the same sum."""
    generator = torch.Generator().manual_seed(seed)
    model = OfTable(tiny(1, vocabulary))
    draws = torch.randint(1, 4, (vocabulary, vocabulary), generator=generator)
    table = draws.mul(-0.5)
    table[:, END] -= 0.5
    table[torch.rand(table.shape, generator=generator) < 0.2] = float("-inf")
    model.table = table
    return model


@pytest.mark.parametrize("policy", ["cut", "keep"])
@pytest.mark.parametrize("stop", STOPS)
def test_ties_are_broken_as_on_the_host_to_the_last_bit(stop, policy):
    for seed, (beam, penalty) in enumerate(product((1, 3, 6), PENALTIES)):
        model = of_table(seed)
        source, limits = batch_of_five(seed)
        options = SearchOptions(
            beam=beam,
            n_best=beam,
            stop=stop,
            length_limit_policy=policy,
            length_penalty=str(penalty),
        )
        expected = beam_search(model, source, limits, options)
        assert search_on_device(model, source, limits, options) == expected
        walks = greedy_search(model, source, limits, options)
        found = search_on_device(model, source, limits, options, greedy=True)
        assert found == [[one] for one in walks]


def test_sentences_leave_for_smaller_lanes_and_long_ones_for_larger():
    model, options = GraphedModel(tiny(3, 12)), SearchOptions(beam=4, stop="when-beam-finished")
    source, _ = batch_of_five(3)
    source = torch.cat((source, source.flip(0), source))
    limits = [3, 40, 5, 0, 2, 9, 1, 4, 80, 2, 5, 1, 7, 2, 30]
    rules = [*RULES, MinLength(60, END)]  # all go on to their limits
    expected = beam_search(model, source, limits, options, rules)
    is_same(expected, search_on_device(model, source, limits, options, rules))
    sizes = {lane.sizes for lane, _ in model.lanes._free if lane.choices}
    assert {one.sentences for one in sizes} >= {16, 8, 4, 2, 1}
    assert max(one.slots for one in sizes) > 64


def test_another_search_takes_the_graphs_of_the_first():
    model = GraphedModel(tiny(1, 12))
    source, limits = batch_of_five(1)
    first = search_on_device(model, source, limits, SearchOptions())
    graphs = {name for lane, _ in model.lanes._free for name in lane.graphs}
    again = search_on_device(model, source, limits, SearchOptions())
    assert again == first
    assert {name for lane, _ in model.lanes._free for name in lane.graphs} == graphs
    search_on_device(model, source, limits, SearchOptions(beam=3))
    assert {name for lane, _ in model.lanes._free for name in lane.graphs} > graphs


def test_threads_choose_at_once():
    plain = tiny(1, 12)
    recorded = GraphedModel(plain)
    batches = [batch_of_five(seed) for seed in range(6)]
    expected = [beam_search(plain, *batch, SearchOptions()) for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda one: search_on_device(recorded, *one, SearchOptions()), batches * 3)
        for ours, theirs in zip(expected * 3, found, strict=True):
            is_same(ours, theirs)


@pytest.mark.parametrize(
    "changes",
    [
        {"stop": "as-joey"},
        {"stop": "as-opennmt"},
        {"diverse_groups": 2},
        {"beam": 7},  # more candidates than tokens
    ],
    ids=str,
)
def test_what_only_the_host_can_choose_is_left_to_it(changes):
    source, limits = batch_of_five(1)
    options = SearchOptions(**changes)
    assert search_on_device(GraphedModel(tiny(1, 12)), source, limits, options) is None


def test_other_rules_plain_models_and_long_searches_are_left_to_the_host(monkeypatch):
    plain, (source, limits), options = tiny(1, 12), batch_of_five(1), SearchOptions()
    recorded = GraphedModel(plain)
    assert search_on_device(plain, source, limits, options) is None
    assert search_on_device(recorded, source, limits, options, [NoRepeatNgram(2)]) is None
    assert search_on_device(recorded, source, limits, options) is not None
    monkeypatch.setattr(on_device, "_MOST_CANDIDATES", 100)
    assert search_on_device(recorded, source, limits, options) is None


@pytest.mark.parametrize(
    ("changes", "is_taken"),
    [
        ({}, True),
        ({"beam": 1}, True),
        ({"no_repeat_ngram": 2}, False),
        ({"sample": Sampling()}, False),
        ({"diverse_groups": 2}, False),
    ],
    ids=str,
)
def test_searches_by_settings_stay_on_the_device_where_they_can(changes, is_taken, monkeypatch):
    answers = []

    def noted(*given, **named):
        answers.append(search_on_device(*given, **named))
        return answers[-1]

    monkeypatch.setattr(search_module, "search_on_device", noted)
    plain, (source, limits), options = tiny(1, 12), batch_of_five(1), SearchOptions(**changes)
    found = search_module.run_search(GraphedModel(plain), source, limits, options)
    assert any(answers) == is_taken
    is_same(search_module.run_search(plain, source, limits, options), found)
    answers.clear()  # those who watch a search need the host
    search_module.run_search(
        GraphedModel(plain), source, limits, options, observer=lambda snapshot: None
    )
    assert not answers


@pytest.mark.parametrize("greedy", [False, True])
def test_a_step_with_its_choice_reads_nothing_of_the_host(greedy, monkeypatch):
    # what a plan needs is read when its buffers are made
    monkeypatch.setattr(
        choices_module, "_forbidden_ids", lambda rule, vocabulary: torch.tensor(rule.forbidden)
    )
    model = GraphedModel(small().to("meta"))
    rules = [
        *RULES,
        MinLength(2, END),
        ForcedEos([3], END, torch.device("meta")),
        Renormalization(),
    ]
    plan = ChoicePlan.of(SearchOptions(), rules, END, 20, 64, greedy)
    search = DeviceSearch(model, plan, rules)
    memory = Memory(on_no_device((5, 7, 16), torch.float32), on_no_device((5, 1, 1, 7), torch.bool))
    with torch.inference_mode():
        state = search._begin(memory, [3] * 5)
        lane = state.lease.lane
        with observe_operations(on_one_device):
            for width in (1, search.width, search.width):
                search._step(lane, search._choices(lane), width)
