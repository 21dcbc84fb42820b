"""Diverse beam search against algorithm 1 of the paper, written down again with lists."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.search.beam import beam_search
from heedful.search.diverse import diverse_beam_search, interleave_groups
from heedful.search.hypothesis import Hypothesis
from heedful.search.rules import ForcedPrefix
from heedful.search.settings import SearchOptions
from tests.support.exhaustive_search import (
    END,
    FORBIDDEN,
    PENALTIES,
    RULES,
    alone,
    batch_of_five,
    log_probabilities,
)

PENALTY = PENALTIES[1]


def algorithm_1(model, source, limit, *, beam, groups, diversity):
    """
    Run the box of Vijayakumar et al. 2018 to the last step; what has ended leaves its group.

    Theta is what the box calls the score of a beam: after line 5 it holds the diversity term.
    """
    width = beam // groups
    opened = [[((), 0.0, ())] for _ in range(groups)]
    complete = [[] for _ in range(groups)]
    for step in range(limit + 1):
        last = [list(group) for group in opened]
        before = []
        for group in range(groups):
            chosen, candidates = [], []
            for tokens, theta, each in opened[group]:
                target_in = torch.tensor([[model.start_token, *tokens]])
                table = log_probabilities(model, source, target_in)[0, -1].tolist()
                for token, score in enumerate(table):
                    if token not in FORBIDDEN:
                        augmented = theta + score - diversity * before.count(token)
                        candidates.append((augmented, (*tokens, token), (*each, score)))
            candidates = sorted(candidates, key=lambda c: -c[0])[: 2 * width]
            for _, tokens, each in candidates[:width]:
                if tokens[-1] == END:
                    complete[group].append((sum(each) / PENALTY.divisor(step + 1), tokens[:-1]))
                    chosen.append(END)
            going = [c for c in candidates if c[1][-1] != END][:width]
            opened[group] = [(tokens, theta, each) for theta, tokens, each in going]
            before += [*chosen, *(tokens[-1] for _, tokens, _ in going)]
    found = []
    for ended, cut in zip(complete, last, strict=True):
        entries = [(True, *entry) for entry in sorted(ended, reverse=True)[:width]]
        for tokens, _, each in cut:
            if len(entries) < width and tokens not in [entry[2] for entry in entries]:
                entries.append((False, sum(each) / PENALTY.divisor(max(1, limit)), tokens))
        found.append(entries)
    return found


@settings(max_examples=12)
@given(
    st.integers(0, 30),
    st.sampled_from([(4, 2), (4, 4), (6, 2), (6, 3)]),
    st.sampled_from([0.0, 0.3, 1.0, 5.0]),
    st.integers(0, 4),
)
def test_groups_are_those_of_the_papers_algorithm(tiny, seed, shape, diversity, limit):
    model = tiny(seed, vocabulary=9)
    source = torch.tensor([[4, 5, END]])
    beam, groups = shape
    expected = algorithm_1(model, source, limit, beam=beam, groups=groups, diversity=diversity)
    (found,) = diverse_beam_search(
        model,
        source,
        [limit],
        SearchOptions(
            beam=beam,
            diverse_groups=groups,
            diversity_strength=diversity,
            length_penalty=str(PENALTY),
            n_best=beam,
        ),
        rules=RULES,
    )
    entries = sorted(entry for group in expected for entry in group)
    different = {tokens: (ended, score) for ended, score, tokens in entries}
    assert {hypothesis.tokens for hypothesis in found} >= set(different)
    assert len(found) >= min(beam, len(different))
    for hypothesis in (one for one in found if one.tokens in different):
        ended, score = different[hypothesis.tokens]
        assert hypothesis.ended == ended
        assert hypothesis.score == pytest.approx(score, abs=1e-4)
    order = [(not hypothesis.ended, -hypothesis.score) for hypothesis in found]
    assert order == sorted(order)


def in_groups(settings, groups, strength):
    return replace(settings, diverse_groups=groups, diversity_strength=strength)


def test_a_list_in_which_groups_agree_is_filled_up(tiny):
    model, source = tiny(4, vocabulary=12), torch.tensor([[4, 5, END], [6, 4, END]])
    wide = SearchOptions(beam=4, length_penalty=str(PENALTY), n_best=4)
    plain = beam_search(model, source, [6, 5], wide, RULES)
    groups = in_groups(wide, 4, 0.0)
    found = diverse_beam_search(model, source, [6, 5], groups, RULES)
    for chosen, others in zip(found, plain, strict=True):
        assert len({one.tokens for one in chosen}) == 4
        assert len({one.tokens for one in chosen} - {one.tokens for one in others}) <= 1


def test_one_group_is_plain_beam_search(tiny):
    model = tiny(4, vocabulary=12)
    source, limits = batch_of_five(4)
    wide = SearchOptions(beam=4, length_penalty=str(PENALTY), n_best=4)
    plain = beam_search(model, source, limits, wide, RULES)
    assert diverse_beam_search(model, source, limits, wide, RULES) == plain


@pytest.mark.parametrize("groups", [2, 4])
def test_many_sentences_together_are_found_as_each_alone(tiny, groups):
    model = tiny(groups, vocabulary=12)
    source, limits = batch_of_five(groups)
    prefixes = [[], [5], [], [6], [7, 8]]
    options = {
        "settings": SearchOptions(
            beam=4, diverse_groups=groups, length_penalty=str(PENALTY), n_best=3
        )
    }
    rules = [*RULES, ForcedPrefix(prefixes)]
    together = diverse_beam_search(model, source, limits, rules=rules, **options)
    for row, limit in enumerate(limits):
        own = [*RULES, ForcedPrefix(prefixes[row : row + 1])]
        (single,) = diverse_beam_search(model, alone(source, row), [limit], rules=own, **options)
        assert [h.tokens for h in together[row]] == [h.tokens for h in single]


def test_a_high_cost_makes_every_group_begin_with_another_token(tiny):
    model, source = tiny(5, vocabulary=12), torch.tensor([[4, 5, END]])
    wide = SearchOptions(beam=4, length_penalty=str(PENALTY), n_best=4)
    (plain,) = beam_search(model, source, [6], wide, RULES)
    (found,) = diverse_beam_search(model, source, [6], in_groups(wide, 4, 50.0), RULES)
    begun = [hypothesis.tokens[0] for hypothesis in found if hypothesis.tokens]
    assert len(set(begun)) == len(begun) >= 3
    assert len({hypothesis.tokens[0] for hypothesis in plain if hypothesis.tokens}) < 3
    assert max(h.score for h in found) <= plain[0].score + 1e-5


def test_the_list_takes_from_each_group_in_turn_and_nothing_twice():
    def one(score, *tokens, ended=True):
        return Hypothesis(tokens, (), score, ended)

    groups = [
        [one(-1.0, 1), one(-1.1, 2), one(-1.2, 3)],
        [one(-1.05, 2), one(-4.0, 5)],
        [one(-0.5, 6, ended=False)],
    ]
    assert [h.tokens for h in interleave_groups(groups, 3)] == [(1,), (2,), (6,)]
    assert [h.tokens for h in interleave_groups(groups, 4)] == [(1,), (2,), (5,), (6,)]
    assert [h.tokens for h in interleave_groups(groups, 9)] == [(1,), (2,), (3,), (5,), (6,)]
    assert [h.tokens for h in interleave_groups(groups, 1)] == [(1,)]
    cut = one(-0.5, 4, ended=False)
    assert interleave_groups([[cut], [one(-1.0, 7), one(-2.0, 4)]], 2) == [
        one(-1.0, 7),
        one(-2.0, 4),
    ]
