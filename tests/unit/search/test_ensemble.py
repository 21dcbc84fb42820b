"""Several models as one, against the mean of their probabilities written out."""

import pytest
import torch

from heedful.search.beam import beam_search
from heedful.search.ensemble import Ensemble
from heedful.search.greedy import greedy_search
from heedful.search.rules import AllowedTokens
from heedful.search.sampling import sample
from heedful.search.settings import Sampling, SearchOptions
from tests.support.exhaustive_search import (
    END,
    FORBIDDEN,
    PENALTIES,
    RULES,
    batch_of_five,
    every_sequence,
    is_close,
    log_probabilities,
)

SOURCE = torch.tensor([[4, 5, END]])
PENALTY = PENALTIES[1]
OTHER = {
    "norm": "pre",
    "d_model": 12,
    "heads": 3,
    "decoder_layers": 2,
    "output_bias": True,
    "positions": "learned",
    "tie_embeddings": "none",
    "decoder_start": "end",
}


def mean_of(models, shares):
    """Average probabilities, each model reading its own start token; the slow twin."""

    def table_of(_, source, target_in):
        total = 0.0
        for model, share in zip(models, shares, strict=True):
            own = target_in.clone()
            own[:, 0] = model.start_token
            each = log_probabilities(model, source, own).double().exp()
            total = total + share * torch.nn.functional.pad(each, (0, 7 - each.size(-1)))
        return total.log()

    return table_of


def pair(tiny, seed=0):
    return tiny(seed, vocabulary=6), tiny(seed + 1, vocabulary=7, **OTHER)


@pytest.mark.parametrize(("weights", "shares"), [(None, (0.5, 0.5)), ((3.0, 1.0), (0.75, 0.25))])
def test_a_wide_beam_finds_the_best_of_all_sequences_under_the_mean(tiny, weights, shares):
    models = pair(tiny, 3)
    ensemble = Ensemble(models, weights)
    table_of = mean_of(models, shares)

    def without_filling(*pair):
        return table_of(*pair)[..., :6]

    expected = every_sequence(ensemble, SOURCE, 3, PENALTY, without_filling)[:4]
    rules = [AllowedTokens(6, FORBIDDEN)]
    (found,) = beam_search(
        ensemble,
        SOURCE,
        [3],
        SearchOptions(beam=100, length_penalty=str(PENALTY), n_best=4),
        rules=rules,
    )
    is_close(found, expected)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_model_with_itself_is_the_model(tiny, times):
    model = tiny(5, vocabulary=12)
    ensemble = Ensemble([model] * times)
    source, limits = batch_of_five(5)
    wide = SearchOptions(beam=3, length_penalty=str(PENALTY))
    drawn = SearchOptions(sample=Sampling(2.0), length_penalty=str(PENALTY))
    searches = [
        lambda one: [h for (h,) in beam_search(one, source, limits, wide, RULES)],
        lambda one: greedy_search(one, source, limits, wide, RULES),
        lambda one: [h for (h,) in sample(one, source, limits, drawn, None, RULES)],
    ]
    for search in searches:
        for found, expected in zip(search(ensemble), search(model), strict=True):
            assert found.tokens == expected.tokens
            assert found.log_probabilities == pytest.approx(expected.log_probabilities, abs=1e-4)


def test_scores_are_normalized_whatever_the_tables_are_filled_up_to(tiny):
    ensemble = Ensemble(pair(tiny))
    target_in = torch.tensor([[ensemble.start_token, 4, 5]])
    with torch.no_grad():
        scores = ensemble(SOURCE, target_in)
    assert scores.shape == (1, 3, 7)
    torch.testing.assert_close(scores.exp().sum(-1), torch.ones(1, 3))
    torch.testing.assert_close(torch.log_softmax(scores, -1), scores, atol=1e-6, rtol=0)
    expected = mean_of(pair(tiny), (0.5, 0.5))(None, SOURCE, target_in)
    torch.testing.assert_close(scores.double(), expected, atol=1e-5, rtol=0)


def test_steps_equal_the_whole_when_rows_move_and_sentences_leave(tiny):
    ensemble = Ensemble(pair(tiny))
    source = torch.tensor([[4, 5, END, 0], [5, 4, 4, END]])
    target = torch.tensor([[4, 5, 1], [5, 1, 4]])
    start = torch.full((2, 1), ensemble.start_token)
    with torch.no_grad():
        whole = ensemble.states(source, torch.cat([start, target], dim=1))
        state = ensemble.start(ensemble.encode(source))
        first, state = ensemble.step(state, start[:, 0])
        second, state = ensemble.step(state, target[:, 0])
        state = state.select(torch.tensor([1, 1]), torch.tensor([1]))
        third, _ = ensemble.step(state, target[[1, 1], 1])
    torch.testing.assert_close(first, whole[:, 0], atol=1e-5, rtol=0)
    torch.testing.assert_close(second, whole[:, 1], atol=1e-5, rtol=0)
    torch.testing.assert_close(third, whole[[1, 1], 2], atol=1e-5, rtol=0)


def test_one_sure_model_is_not_vetoed(tiny):
    ensemble = Ensemble(pair(tiny), (1.0, 3.0))
    each = torch.tensor([[[0.0, -200.0]]])
    assert float(ensemble.mean(each)) == pytest.approx(torch.tensor(0.25).log().item())


def test_what_cannot_be_an_ensemble_is_refused(tiny):
    for models, weights in (([], None), (pair(tiny), (1.0,)), (pair(tiny), (1.0, 0.0))):
        with pytest.raises(ValueError, match="one weight above 0"):
            Ensemble(models, weights)
    with pytest.raises(TypeError, match="each member has one"):
        _ = Ensemble(pair(tiny)).output
