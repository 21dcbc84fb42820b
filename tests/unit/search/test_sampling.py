"""Samples against the distribution they are drawn from, written out in full."""

import itertools
import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import SettingError
from heedful.search.greedy import greedy_search
from heedful.search.rules import ForcedPrefix, NoRepeatNgram
from heedful.search.sampling import choose, filter_scores, sample, uniforms
from heedful.search.settings import Sampling, SearchOptions
from tests.support.exhaustive_search import (
    END,
    FORBIDDEN,
    PENALTIES,
    RULES,
    alone,
    batch_of_five,
    log_probabilities,
)

SOURCE = torch.tensor([[4, 5, END]])
PENALTY = PENALTIES[1]


def chance_of_as_bad(observed, expected):
    """P value of Pearson's chi-square test; classes of few are put together."""
    pairs = sorted(zip(expected, observed, strict=True))
    while len(pairs) > 1 and pairs[0][0] < 5:
        (a, b), (c, d), *rest = pairs
        pairs = sorted([(a + c, b + d), *rest])
    assert len(pairs) > 3
    statistic = sum((seen - wanted) ** 2 / wanted for wanted, seen in pairs)
    freedom = torch.tensor((len(pairs) - 1) / 2, dtype=torch.float64)
    return float(torch.special.gammaincc(freedom, torch.tensor(statistic / 2).double()))


def draw_from(table, sampling):
    """Temper and filter one distribution, token by token: the slow twin of `filter_scores`."""
    weights = {t: math.exp(s / sampling.temperature) for t, s in enumerate(table)}
    falling = sorted(weights, key=lambda token: (-weights[token], token))
    if sampling.top_k:
        last = weights[falling[min(sampling.top_k, len(falling)) - 1]]
        falling = [token for token in falling if weights[token] >= last]
    total = sum(weights[token] for token in falling)
    kept, mass = [], 0.0
    for token in falling:
        if mass >= sampling.top_p * total and sampling.top_p < 1.0:
            break
        kept.append(token)
        mass += weights[token]
    return {token: weights[token] / mass for token in kept if weights[token]}


def every_outcome(model, source, limit, sampling):
    """Compute the probability of every translation that can be drawn, cut ones included."""
    outcomes = Counter()

    def go_on(tokens, probability):
        table = log_probabilities(model, source, torch.tensor([[model.start_token, *tokens]]))
        scores = table[0, -1].double()
        scores[list(FORBIDDEN)] = float("-inf")
        for token, share in draw_from(scores.tolist(), sampling).items():
            if token == END:
                outcomes[tokens, True] += probability * share
            elif len(tokens) == limit:
                outcomes[tokens, False] += probability * share
            else:
                go_on((*tokens, token), probability * share)

    go_on((), 1.0)
    assert sum(outcomes.values()) == pytest.approx(1.0)
    return outcomes


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(seed=1),
        Sampling(temperature=0.5, seed=2),
        Sampling(temperature=3.0, top_k=2, seed=3),
        Sampling(temperature=2.0, top_p=0.7, seed=4),
        Sampling(temperature=2.5, top_k=3, top_p=0.8, seed=5),
    ],
)
def test_samples_follow_the_distribution_of_all_translations(tiny, sampling):
    model, drawn = tiny(11), 3000
    expected = every_outcome(model, SOURCE, 3, sampling)
    (found,) = sample(
        model,
        SOURCE,
        [3],
        SearchOptions(sample=sampling, n_best=drawn, length_penalty=str(PENALTY)),
        rules=RULES,
    )
    seen = Counter((hypothesis.tokens, hypothesis.ended) for hypothesis in found)
    assert set(seen) <= set(expected)
    shares = [drawn * expected[outcome] for outcome in expected]
    assert chance_of_as_bad([seen[outcome] for outcome in expected], shares) > 0.001


def test_lines_and_seeds_draw_as_samples_do(tiny):
    model = tiny(11)
    expected = every_outcome(model, SOURCE, 2, Sampling())
    seen = Counter()
    for seed in range(6):
        found = sample(
            model,
            SOURCE.expand(500, -1),
            [2] * 500,
            SearchOptions(sample=Sampling(seed=seed), length_penalty=str(PENALTY)),
            rules=RULES,
        )
        seen.update((hypothesis.tokens, hypothesis.ended) for (hypothesis,) in found)
    shares = [3000 * expected[outcome] for outcome in expected]
    assert chance_of_as_bad([seen[outcome] for outcome in expected], shares) > 0.001


@settings(max_examples=60)
@given(
    st.lists(st.integers(-24, 0).map(lambda n: n / 3), min_size=1, max_size=9),
    st.sampled_from([0.2, 0.7, 1.0, 3.1]),
    st.integers(0, 10),
    st.sampled_from([0.0517, 0.3171, 0.5013, 0.9037, 1.0]),  # no sum of equal shares hits them
)
def test_filters_keep_what_a_plain_loop_keeps(table, temperature, top_k, top_p):
    scores = torch.tensor([table])
    sampling = Sampling(temperature, top_k, top_p)
    found = filter_scores(scores, sampling)[0].tolist()
    expected = draw_from(scores[0].double().tolist(), sampling)
    assert found == pytest.approx([expected.get(t, 0.0) for t in range(len(table))], abs=1e-9)


def test_top_p_keeps_the_token_that_crosses_and_top_k_keeps_ties():
    scores = torch.tensor([[0.5, 0.25, 0.125, 0.125]]).log()
    kept = {
        sampling: filter_scores(scores, sampling)[0].nonzero().flatten().tolist()
        for sampling in (Sampling(top_p=0.5), Sampling(top_p=0.51), Sampling(top_k=3))
    }
    assert list(kept.values()) == [[0], [0, 1], [0, 1, 2, 3]]


def test_a_draw_falls_into_the_share_of_its_token():
    probabilities = torch.tensor([[0.0, 0.5, 0.0, 0.25, 0.25, 0.0]]).double().expand(5, -1)
    chance = torch.tensor([0.0, 0.4999, 0.5, 0.75, 1 - 2.0**-48], dtype=torch.float64)
    assert choose(probabilities, chance).tolist() == [1, 1, 3, 4, 4]


@settings(max_examples=8)
@given(st.integers(0, 2**63 - 1), st.integers(1, 3))
def test_a_sample_does_not_depend_on_its_batch(tiny, seed, samples):
    model = tiny(3, vocabulary=12)
    source, limits = batch_of_five(3)
    three = SearchOptions(
        sample=Sampling(1.3, top_p=0.95, seed=seed), n_best=3, length_penalty=str(PENALTY)
    )
    lines = [10, 11, 12, 13, 14]
    together = sample(model, source, limits, three, lines, RULES)
    for row, limit in enumerate(limits):
        few = replace(three, n_best=samples)
        (single,) = sample(model, alone(source, row), [limit], few, [lines[row]], RULES)
        assert [h.tokens for h in single] == [h.tokens for h in together[row][:samples]]
        for one, other in zip(single, together[row], strict=False):
            assert one.score == pytest.approx(other.score, abs=1e-4)


def test_log_probabilities_are_the_models_own(tiny):
    model = tiny(4, vocabulary=9)
    hard = Sampling(temperature=2.0, top_k=4, top_p=0.9, seed=9)
    rules = [*RULES, ForcedPrefix([(5, 6)]), NoRepeatNgram(2)]
    (found,) = sample(
        model,
        SOURCE,
        [6],
        SearchOptions(sample=hard, n_best=20, length_penalty=str(PENALTY)),
        rules=rules,
    )
    assert len({hypothesis.tokens for hypothesis in found}) > 5
    for hypothesis in found:
        assert hypothesis.tokens[:2] == (5, 6)
        table = log_probabilities(model, SOURCE, torch.tensor([[2, *hypothesis.tokens]]))[0]
        tokens = [*hypothesis.tokens, END][: len(hypothesis.log_probabilities)]
        each = [float(table[i, t]) for i, t in enumerate(tokens)]
        assert hypothesis.log_probabilities == pytest.approx(each, abs=1e-4)
        assert hypothesis.score == pytest.approx(sum(each) / PENALTY.divisor(len(each)), abs=1e-4)


@pytest.mark.parametrize("sampling", [Sampling(top_k=1), Sampling(1e-3), Sampling(top_p=1e-9)])
def test_where_one_token_is_left_sampling_is_greedy(tiny, sampling):
    model = tiny(5, vocabulary=12)
    source, limits = batch_of_five(5)
    greedy = greedy_search(
        model, source, limits, SearchOptions(length_penalty=str(PENALTY)), rules=RULES
    )
    found = sample(
        model,
        source,
        limits,
        SearchOptions(sample=sampling, length_penalty=str(PENALTY)),
        rules=RULES,
    )
    assert [hypothesis.tokens for (hypothesis,) in found] == [h.tokens for h in greedy]


MASK = (1 << 64) - 1


def split_mix(state):
    """SplitMix64 as published, in whole numbers: the next state's 64 bits."""
    z = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def test_uniform_numbers_are_split_mix_64_over_seed_line_sample_and_step():
    # what others print for the seeds 0 and 1234567
    assert split_mix(0) == 0xE220A8397B1DCDAF
    assert split_mix(1234567) == 6457827717110365317
    for seed, line, number, step in itertools.product(
        (0, 1, 2**63 - 1), (0, 1, 10**9), (0, 7), (0, 200)
    ):
        bits = split_mix(seed)
        for word in (line, number, step):
            bits = split_mix(bits ^ word)
        (found,) = uniforms(seed, torch.tensor([line]), torch.tensor([number]), step).tolist()
        assert found == (bits >> 16) / 2**48


@pytest.mark.parametrize("along", ["line", "sample", "step", "seed"])
def test_uniform_numbers_are_spread_evenly_and_neighbors_differ(along):
    count = 4096 if along in ("line", "sample") else 640
    numbers = torch.arange(count)
    zeros = torch.zeros_like(numbers)
    found = {
        "line": lambda: uniforms(0, numbers, zeros, 0),
        "sample": lambda: uniforms(0, zeros, numbers, 0),
        "step": lambda: torch.cat([uniforms(0, zeros[:1], zeros[:1], i) for i in range(count)]),
        "seed": lambda: torch.cat([uniforms(i, zeros[:1], zeros[:1], 0) for i in range(count)]),
    }[along]()
    assert found.dtype == torch.float64
    assert float(found.min()) >= 0.0
    assert float(found.max()) < 1.0
    cells = (found[:-1] * 6).long() * 6 + (found[1:] * 6).long()
    seen = torch.bincount(cells, minlength=36).tolist()
    assert chance_of_as_bad(seen, [(count - 1) / 36] * 36) > 0.001


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_k": -1}, "top-k"),
        ({"top_p": 0.0}, "top-p"),
        ({"top_p": 1.5}, "top-p"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**63}, "seed"),
    ],
)
def test_values_out_of_range_are_refused(wrong, told):
    with pytest.raises(SettingError, match=told):
        Sampling(**wrong)
