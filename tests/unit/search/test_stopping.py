import pytest
import torch

from heedful.search.beam import beam_search
from heedful.search.length import LengthPenalty
from heedful.search.rules import AllowedTokens, ForcedEos, Renormalization
from heedful.search.search import run_search
from heedful.search.settings import SearchOptions
from tests.support.exhaustive_search import (
    END,
    RULES,
    alone,
    batch_of_five,
)

POWER = LengthPenalty("power", 1.0)


@pytest.mark.parametrize(
    "stop",
    ["when-none-can-win", "when-beam-finished", "as-transformers", "as-joey", "as-opennmt"],
)
@pytest.mark.parametrize("length_limit_policy", ["cut", "end", "force", "keep"])
def test_what_a_sentence_gets_does_not_depend_on_its_batch(tiny, stop, length_limit_policy):
    model = tiny(3, vocabulary=12)
    source, limits = batch_of_five(3)
    limits = [max(1, limit) for limit in limits]

    def search(rows, bounds):
        return run_search(
            model,
            rows,
            bounds,
            SearchOptions(
                beam=3,
                length_penalty=str(POWER),
                stop=stop,
                length_limit_policy=length_limit_policy,
                renormalise=True,
            ),
            rules=[AllowedTokens(12, (0, 2))],
        )

    together = search(source, limits)
    for row, limit in enumerate(limits):
        (single,) = search(alone(source, row), [limit])
        assert together[row][0].tokens == single[0].tokens
        assert len(single[0].tokens) <= limit


@pytest.mark.parametrize("length_limit_policy", ["cut", "end", "force", "keep"])
@pytest.mark.parametrize("beam", [1, 3])
def test_the_limit_counts_more_than_the_least_length(tiny, length_limit_policy, beam):
    model = tiny(3, vocabulary=12)
    source, limits = batch_of_five(3)
    limits = [max(1, limit) for limit in limits]
    found = run_search(
        model,
        source,
        limits,
        SearchOptions(
            beam=beam,
            length_penalty=str(POWER),
            length_limit_policy=length_limit_policy,
            min_length=4,
            no_repeat_ngram=1,
        ),
        rules=[AllowedTokens(12, (0, 2))],
    )
    lengths = [len(hypotheses[0].tokens) for hypotheses in found]
    assert min(limits) < 4 < max(limits)
    assert all(
        min(4, limit) <= length <= limit for length, limit in zip(lengths, limits, strict=True)
    )


def test_a_forced_end_costs_nothing():
    rule = ForcedEos([1, 2], END)
    scores = torch.full((2, 6), -1.0)
    first = rule(scores, torch.zeros(2, 1, dtype=torch.long), torch.tensor([0, 1]))
    assert first[0].tolist() == [0.0 if n == END else float("-inf") for n in range(6)]
    assert first[1].equal(scores[1])
    assert rule(scores, torch.zeros(2, 0, dtype=torch.long), torch.tensor([0, 1])) is scores


def test_a_forced_end_may_cost_what_the_model_says():
    rule = ForcedEos([1], END, is_free=False)
    scores = torch.full((1, 6), -1.5)
    (found,) = rule(scores, torch.zeros(1, 1, dtype=torch.long), torch.tensor([0]))
    assert found.tolist() == [-1.5 if n == END else float("-inf") for n in range(6)]
    scores[:, END] = float("-inf")  # another rule forbids it, and the limit counts more
    (found,) = rule(scores, torch.zeros(1, 1, dtype=torch.long), torch.tensor([0]))
    assert found[END] == 0.0


def test_what_is_left_adds_up_to_one():
    scores = torch.tensor([[float("-inf"), -1.0, -2.0]])
    left = Renormalization()(scores, torch.zeros(1, 0, dtype=torch.long), torch.tensor([0]))
    assert left.exp().sum().item() == pytest.approx(1.0)
    assert left[0, 0].isneginf()


def test_all_that_reach_the_limit_may_count_like_the_others(tiny):
    model = tiny(1, vocabulary=12)
    source = torch.tensor([[4, 5, END]])
    (kept,) = beam_search(
        model,
        source,
        [2],
        SearchOptions(beam=3, length_penalty=str(POWER), n_best=3, length_limit_policy="keep"),
        rules=RULES,
    )
    assert max(len(hypothesis.tokens) for hypothesis in kept) == 2
    assert [h.score for h in kept] == sorted((h.score for h in kept), reverse=True)
    assert all(
        h.score == pytest.approx(sum(h.log_probabilities) / len(h.log_probabilities)) for h in kept
    )
