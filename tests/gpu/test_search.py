"""Every search finds on a GPU what it finds on a processor, with every family of models."""

from dataclasses import replace

import pytest

from heedful.data.batching import Collator
from heedful.search.beam import beam_search
from heedful.search.constrained import constrained_beam_search
from heedful.search.diverse import diverse_beam_search
from heedful.search.ensemble import Ensemble
from heedful.search.greedy import greedy_search
from heedful.search.sampling import sample
from heedful.search.scoring import pair_log_probabilities
from heedful.search.settings import Sampling, SearchOptions
from tests.support.exhaustive_search import batch_of_five, tiny
from tests.support.models import ATTENTIONS, FAMILIES

SETTINGS = SearchOptions(beam=4, n_best=2, length_penalty="gnmt:0.6")


def both(model, there, search, gpu):
    """Search on both devices and compare."""
    source, limits = batch_of_five(1)
    here, found = search(model, source, limits), search(there, source.to(gpu), limits)
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
    both(Ensemble(models), Ensemble([on_gpu(model) for model in models]), by_beam, gpu)


def constrained(model, source, limits):
    phrases = [[[5], [6, 7]], [[4]], [], [], [[8]]]
    return constrained_beam_search(model, source, limits, SETTINGS, phrases)


def diverse(model, source, limits):
    settings = replace(SETTINGS, diverse_groups=2, diversity_strength=0.5)
    return diverse_beam_search(model, source, limits, settings)


def samples(model, source, limits):
    settings = replace(SETTINGS, n_best=3, sample=Sampling(seed=3, top_k=6))
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
