"""Every search finds on a GPU what it finds on a processor, with every family of models."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch

from heedful.data.batching import Collator
from heedful.model.graphed import GraphedModel, can_record
from heedful.search.beam import beam_search
from heedful.search.constrained import constrained_beam_search
from heedful.search.diverse import diverse_beam_search
from heedful.search.ensemble import Ensemble
from heedful.search.greedy import greedy_search
from heedful.search.on_device import search_on_device
from heedful.search.sampling import sample
from heedful.search.scoring import pair_log_probabilities
from heedful.search.search import run_search
from heedful.search.settings import Sampling, SearchOptions
from tests.support.exhaustive_search import RULES, batch_of_five, tiny
from tests.support.models import ATTENTIONS, FAMILIES, small
from tests.support.models import SETTINGS as KINDS

SETTINGS = SearchOptions(beam=4, n_best=2, length_penalty="gnmt:0.6")


def both(model, there, search, gpu):
    """Search on both devices and compare; on the GPU also with recorded steps."""
    source, limits = batch_of_five(1)
    here = search(model, source, limits)
    assert_same(here, search(there, source.to(gpu), limits))
    if can_record(there):
        recorded = GraphedModel(there)
        for _ in range(2):  # the second time by the graphs of the first
            assert_same(here, search(recorded, source.to(gpu), limits))
        assert_recorded(recorded)


def assert_recorded(model):
    """The lanes that wait for the next search have graphs, but for those that took no step."""
    graphs = [graph for lane, _ in model.lanes._free for graph in lane.graphs.values()]
    assert graphs
    assert all(graph.pool is not None for graph in graphs)


def assert_same(here, found):
    for one, other in zip(here, found, strict=True):
        assert [h.tokens for h in other] == [h.tokens for h in one]
        for ours, theirs in zip(one, other, strict=True):
            assert theirs.score == pytest.approx(ours.score, abs=1e-4)


def by_beam(model, source, limits):
    return beam_search(model, source, limits, SETTINGS)


def greedily(model, source, limits):
    return [[one] for one in greedy_search(model, source, limits, SETTINGS)]


@pytest.mark.parametrize("changes", [*FAMILIES.values(), *ATTENTIONS], ids=str)
@pytest.mark.parametrize("search", [by_beam, greedily])
def test_searches_find_the_same(changes, search, gpu, on_gpu):
    model = tiny(1, 12, **changes, tie_embeddings="none")
    both(model, on_gpu(model), search, gpu)


def test_an_ensemble_finds_the_same(gpu, on_gpu):
    models = [
        tiny(seed, 12, **FAMILIES[name], tie_embeddings="none")
        for seed, name in enumerate(FAMILIES)
    ]
    there = [on_gpu(model) for model in models]
    both(Ensemble(models), Ensemble(there), by_beam, gpu)
    there = [GraphedModel(model) if can_record(model) else model for model in there]
    both(Ensemble(models), Ensemble(there), by_beam, gpu)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("stop", ["when-none-can-win", "when-beam-finished", "as-transformers"])
def test_choices_on_the_device_are_those_of_the_host(beam, stop, gpu, on_gpu):
    model = tiny(1, 12)
    recorded = GraphedModel(on_gpu(model))
    options = replace(SETTINGS, beam=beam, n_best=min(beam, 2), stop=stop)
    for seed in range(4):
        source, limits = batch_of_five(seed)
        limits = [4 * limit for limit in limits]
        here = run_search(model, source, limits, options, rules=RULES)
        found = search_on_device(recorded, source.to(gpu), limits, options, RULES, greedy=beam == 1)
        assert_same(here, found)
    assert_recorded(recorded)


def constrained(model, source, limits):
    phrases = [[[5], [6, 7]], [[4]], [], [], [[8]]]
    return constrained_beam_search(model, source, limits, SETTINGS, phrases)


def diverse(model, source, limits):
    settings = replace(SETTINGS, diverse_groups=2, diversity_strength=0.5)
    return diverse_beam_search(model, source, limits, settings)


def samples(model, source, limits):
    settings = replace(SETTINGS, beam=None, n_best=3, sample=Sampling(seed=3, top_k=6))
    return sample(model, source, limits, settings)


@pytest.mark.parametrize("search", [constrained, diverse, samples])
def test_other_searches_find_the_same(search, gpu, on_gpu):
    model = tiny(1, 12)
    both(model, on_gpu(model), search, gpu)


def test_known_targets_have_the_same_log_probabilities(on_gpu):
    model = tiny(1, 12)
    pairs = [[4, 5, 6], [7], [8, 9, 4, 5]], [[5, 6], [7, 8, 9, 4], [10]]
    collator = Collator(model.padding, model.start_token, model.end_token)
    here, there = (pair_log_probabilities(one, collator, *pairs) for one in (model, on_gpu(model)))
    for ours, theirs in zip(here, there, strict=True):
        assert theirs == pytest.approx(ours, abs=1e-4)


def known_steps(model, device, steps=70):
    """Log-probabilities of given beams, step by step, which outgrow their first bucket."""
    chosen = torch.Generator().manual_seed(4)
    source = torch.randint(4, 20, (5, 9), generator=chosen).to(device)
    listed = []
    with torch.inference_mode():
        state = model.start(model.encode(source))
        tokens = torch.full((5,), model.start_token, device=device)
        for _ in range(steps):
            states, state = model.step(state, tokens)
            listed.append(model.log_probabilities(states).cpu())
            width = len(tokens) // 5
            beams = torch.randint(width, (5, 4), generator=chosen)
            rows = torch.arange(0, 5 * width, width).unsqueeze(1) + beams
            state = state.select(rows.flatten().to(device))
            tokens = torch.randint(4, 20, (20,), generator=chosen).to(device)
    return torch.cat(listed)


RECORDED = [settings for settings in KINDS if can_record(small(**settings))]


@pytest.mark.parametrize("settings", RECORDED, ids=str)
def test_recorded_steps_are_those_of_a_processor(settings, gpu, on_gpu):
    model = small(**settings)
    recorded = GraphedModel(on_gpu(model))
    exact = known_steps(model, "cpu")
    torch.testing.assert_close(known_steps(recorded, gpu), exact, atol=1e-4, rtol=0)
    assert_recorded(recorded)


@pytest.mark.parametrize("settings", RECORDED, ids=str)
def test_recorded_steps_in_bf16_are_as_close_as_plain_ones(settings, gpu, on_gpu, record_property):
    model = small(**settings)
    there = on_gpu(model).to(torch.bfloat16)
    exact = known_steps(model, "cpu")
    plain, recorded = (
        (known_steps(one, gpu) - exact).abs() for one in (there, GraphedModel(there))
    )
    record_property("plain", (float(plain.max()), float(plain.mean())))
    record_property("recorded", (float(recorded.max()), float(recorded.mean())))
    assert recorded.mean() <= 1.1 * plain.mean() + 1e-3
    assert recorded.max() <= 1.5 * plain.max() + 1e-2


def test_threads_record_and_search_at_once(gpu, on_gpu):
    plain = tiny(1, 12)
    recorded = GraphedModel(on_gpu(plain))
    batches = [batch_of_five(seed) for seed in range(8)]

    def tokens(model, source, limits):
        return [[one.tokens for one in found] for found in by_beam(model, source, limits)]

    expected = [tokens(plain, *batch) for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(lambda batch: tokens(recorded, batch[0].to(gpu), batch[1]), batches * 4)
        )
    assert found == expected * 4
