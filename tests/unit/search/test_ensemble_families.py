"""A Transformer, an LSTM, ConvS2S and ByteNet as one model, against every sequence there is."""

import itertools

import pytest
import torch

from heedful.search.beam import beam_search
from heedful.search.ensemble import Ensemble
from heedful.search.greedy import greedy_search
from heedful.search.settings import SearchOptions
from tests.support.exhaustive_search import (
    PENALTIES,
    RULES,
    alone,
    batch_of_five,
    every_sequence,
    is_close,
    log_probabilities,
    tiny,
)
from tests.support.models import FAMILIES

PENALTY = PENALTIES[1]


def members(names, vocabulary=6):
    """Models of different widths, for a family alone would be no test of it."""
    widths = itertools.count(8, 4)
    return [
        tiny(seed, vocabulary, **FAMILIES[name], d_model=next(widths), tie_embeddings="none")
        for seed, name in enumerate(names)
    ]


def mean_of(models):
    """The mean of the members' probabilities, written out."""

    def table_of(_, source, target_in):
        each = [log_probabilities(model, source, target_in).double().exp() for model in models]
        return (sum(each) / len(models)).log()

    return table_of


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(
            ("transformer", "recurrent", "convs2s"),
            marks=pytest.mark.family("recurrent", "convs2s"),
        ),
        pytest.param(("bytenet", "transformer"), marks=pytest.mark.family("bytenet")),
        tuple(FAMILIES),
    ],
)
def test_a_wide_beam_finds_the_best_sequence_of_the_mean(names):
    models = members(names)
    source = torch.tensor([[4, 5, 3]])
    settings = SearchOptions(beam=60, n_best=8, length_penalty=str(PENALTY))
    (found,) = beam_search(Ensemble(models), source, [3], settings, RULES)
    is_close(found, every_sequence(models[0], source, 3, PENALTY, mean_of(models))[:8])


def test_a_sentence_does_not_depend_on_its_batch():
    ensemble = Ensemble(members(FAMILIES, 12))
    source, limits = batch_of_five(1)
    settings = SearchOptions(beam=4, n_best=2, length_penalty=str(PENALTY))
    for search in (
        lambda source, limits: beam_search(ensemble, source, limits, settings, RULES),
        lambda source, limits: [
            [one] for one in greedy_search(ensemble, source, limits, settings, RULES)
        ],
    ):
        together = search(source, limits)
        for row, limit in enumerate(limits):
            (by_itself,) = search(alone(source, row), [limit])
            assert [h.tokens for h in together[row]] == [h.tokens for h in by_itself]
            for one, other in zip(together[row], by_itself, strict=True):
                assert one.score == pytest.approx(other.score, abs=1e-4)


def test_known_targets_have_the_mean_too():
    models = members(FAMILIES)
    ensemble = Ensemble(models)
    source, target_in = torch.tensor([[4, 5, 3]]), torch.tensor([[2, 4, 1, 5]])
    with torch.no_grad():
        found = ensemble.log_probabilities(ensemble.states(source, target_in))
    expected = mean_of(models)(None, source, target_in)
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)
