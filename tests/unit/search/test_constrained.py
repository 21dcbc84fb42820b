"""Phrases that must occur, against all sequences that contain them."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.search.beam import beam_search
from heedful.search.constrained import constrained_beam_search, divide_beam
from heedful.search.phrases import Phrases
from heedful.search.rules import ForcedPrefix, NoRepeatNgram
from heedful.search.settings import SearchOptions
from tests.support.exhaustive_search import (
    END,
    FORBIDDEN,
    PENALTIES,
    RULES,
    alone,
    batch_of_five,
    contains,
    every_sequence,
    is_close,
    log_probabilities,
)

SOURCE = torch.tensor([[4, 5, END]])
PENALTY = PENALTIES[1]
phrases_of = st.lists(st.lists(st.sampled_from([1, 4, 5]), max_size=3), max_size=4)


def lacks(tokens, phrases):
    """List the phrases that do not occur as often as they are listed."""
    phrases = [tuple(phrase) for phrase in phrases if phrase]
    return {phrase for phrase in phrases if contains(tokens, phrase) < phrases.count(phrase)}


@pytest.mark.parametrize(
    "phrases",
    [
        [[4]],
        [[5, 5]],
        [[4], [4]],  # twice
        [[4, 4], [4, 4]],  # twice in 4 4 4
        [[4, 5], [5, 1]],  # 4 5 1 is enough
        [[1, 4, 1]],  # 1 4 1 4 1 breaks off and begins again
        [[5], [1], [4]],
        [[5, 1, 4, 5]],
        [[4, 5], [4]],  # one within the other
    ],
)
def test_a_wide_beam_finds_the_best_of_all_sequences_that_contain_the_phrases(tiny, phrases):
    seed, limit = len(phrases) + phrases[0][0], 4
    expected = [
        entry
        for entry in every_sequence(tiny(seed), SOURCE, limit, PENALTY)
        if not lacks(entry[1], phrases)
    ][:5]
    assert expected
    (found,) = constrained_beam_search(
        tiny(seed),
        SOURCE,
        [limit],
        SearchOptions(beam=330, length_penalty=str(PENALTY), n_best=len(expected)),
        phrases=[phrases],
        rules=RULES,
    )
    is_close(found, expected)


def begun(tokens, phrase):
    """Count how many of its first tokens, short of all, a text ends in."""
    tokens, phrase = list(tokens), list(phrase)
    return max(n for n in range(len(phrase)) if tokens[len(tokens) - n :] == phrase[:n])


def tokens_met(tokens, phrases):
    """Count the tokens of phrases that are met, by looking for them."""
    phrases = [tuple(phrase) for phrase in phrases if phrase]
    whole = sum(
        min(contains(tokens, phrase), phrases.count(phrase)) * len(phrase)
        for phrase in set(phrases)
    )
    return whole + max((begun(tokens, phrase) for phrase in lacks(tokens, phrases)), default=0)


def allocation(model, limit, phrases, beam):
    """Write dynamic beam allocation down with lists, to the last step: the slow twin."""
    opened, complete = [((), ())], []
    for step in range(limit + 1):
        last, everything = opened, {}
        for parent, (tokens, each) in enumerate(opened):
            table = log_probabilities(model, SOURCE, torch.tensor([[2, *tokens]]))[0, -1].tolist()
            for token, score in enumerate(table):
                if token not in FORBIDDEN and not (token == END and lacks(tokens, phrases)):
                    everything[parent, token] = sum(each) + score, (*tokens, token), (*each, score)
        ranked = sorted(everything, key=lambda place: -everything[place][0])
        candidates = set(ranked[: 2 * beam])
        for parent, (tokens, _) in enumerate(opened):
            candidates.add(next(place for place in ranked if place[0] == parent))
            missing = lacks(tokens, phrases)
            candidates |= {(parent, phrase[begun(tokens, phrase)]) for phrase in missing}
        banks = {}
        for place in (place for place in ranked if place in candidates):
            text = everything[place][1]
            without_end = text[:-1] if text[-1] == END else text
            banks.setdefault(tokens_met(without_end, phrases), []).append(everything[place])
        dealt = []
        while any(banks.values()):
            dealt += [banks[met].pop(0) for met in sorted(banks, reverse=True) if banks[met]]
        for total, tokens, each in dealt[:beam]:
            if tokens[-1] == END:
                complete.append((total / PENALTY.divisor(step + 1), tokens[:-1], each))
        going = [place for place in dealt[: 2 * beam] if place[1][-1] != END]
        opened = [(tokens, each) for _, tokens, each in going[:beam]]
    found = [tokens for _, tokens, _ in sorted(complete, reverse=True)[:beam]]
    cut = [tokens for tokens, _ in last if tokens not in found]
    return found, cut[: beam - len(found)]


@settings(max_examples=20)
@given(st.integers(0, 30), phrases_of, st.integers(1, 5), st.integers(0, 5))
# where the best extension of a poor hypothesis keeps its bank alive
@example(7, [[5], [4], [5]], 5, 6)
@example(5, [[6, 7]], 4, 6)
def test_a_narrow_beam_is_divided_among_banks_as_it_says(tiny, seed, phrases, beam, limit):
    (found,) = constrained_beam_search(
        tiny(seed, vocabulary=8),
        SOURCE,
        [limit],
        SearchOptions(beam=beam, length_penalty=str(PENALTY), n_best=beam),
        phrases=[phrases],
        rules=RULES,
    )
    ended, cut = allocation(tiny(seed, vocabulary=8), limit, phrases, beam)
    assert [hypothesis.tokens for hypothesis in found if hypothesis.ended] == ended
    assert [hypothesis.tokens for hypothesis in found if not hypothesis.ended] == cut


@settings(max_examples=20)
@pytest.mark.parametrize("policy", ["cut", "keep"])
@given(st.integers(0, 30), phrases_of, st.integers(1, 4), st.integers(0, 2))
def test_a_narrow_beam_meets_all_phrases_if_there_is_room(tiny, policy, seed, phrases, beam, more):
    limit = sum(map(len, phrases)) + more
    (found,) = constrained_beam_search(
        tiny(seed),
        SOURCE,
        [limit],
        SearchOptions(
            beam=beam, length_penalty=str(PENALTY), n_best=beam, length_limit_policy=policy
        ),
        phrases=[phrases],
        rules=RULES,
    )
    assert not lacks(found[0].tokens, phrases)
    assert not any(lacks(h.tokens, phrases) for h in found if h.ended)
    last = [bool(lacks(h.tokens, phrases)) if policy == "keep" else not h.ended for h in found]
    assert last == sorted(last)


def test_where_the_limit_is_too_short_the_nearest_come_first_and_have_not_ended(tiny):
    phrases = [[5, 1, 4], [1, 1]]
    (found,) = constrained_beam_search(
        tiny(2),
        SOURCE,
        [3],
        SearchOptions(beam=6, length_penalty=str(PENALTY), n_best=6),
        phrases=[phrases],
        rules=RULES,
    )
    assert len(found) == 6
    assert not any(hypothesis.ended for hypothesis in found)
    assert all(lacks(hypothesis.tokens, phrases) for hypothesis in found)
    sought = Phrases(phrases)
    banks = [sought.bank(sought.read(hypothesis.tokens)) for hypothesis in found]
    assert banks[0] == max(banks) == 3


def test_each_sentence_of_a_batch_has_its_own_phrases(tiny):
    model = tiny(9, vocabulary=12)
    source, limits = batch_of_five(9)
    phrases = [[[5, 6], [7]], [], [[9, 9]], [[4]], [[8], [8]]]
    prefixes = [[], [4], [10], [], [8]]
    options = {"settings": SearchOptions(beam=4, length_penalty=str(PENALTY), n_best=2)}
    rules = [*RULES, ForcedPrefix(prefixes), NoRepeatNgram(2)]
    together = constrained_beam_search(
        model, source, limits, phrases=phrases, rules=rules, **options
    )
    for row, limit in enumerate(limits):
        own = [*RULES, ForcedPrefix(prefixes[row : row + 1]), NoRepeatNgram(2)]
        (single,) = constrained_beam_search(
            model, alone(source, row), [limit], phrases=[phrases[row]], rules=own, **options
        )
        assert [h.tokens for h in together[row]] == [h.tokens for h in single]
        if row != 3:  # which has no room
            assert not lacks(single[0].tokens, phrases[row])
            assert list(single[0].tokens[: len(prefixes[row])]) == prefixes[row]


@pytest.mark.parametrize("beam", [1, 3])
def test_without_phrases_it_is_beam_search(tiny, beam):
    model = tiny(6, vocabulary=12)
    source, limits = batch_of_five(6)
    options = {
        "settings": SearchOptions(beam=beam, length_penalty=str(PENALTY), n_best=beam),
        "rules": RULES,
    }
    plain = beam_search(model, source, limits, **options)
    found = constrained_beam_search(model, source, limits, phrases=[[]] * 5, **options)
    assert found == plain


@settings(max_examples=200)
@given(phrases_of, st.lists(st.sampled_from([1, 4, 5]), max_size=8))
def test_reading_a_text_counts_what_a_plain_search_counts(phrases, tokens):
    sought = Phrases(phrases)
    progress = sought.read(tuple(tokens))
    assert progress.counts == tuple(contains(tokens, phrase) for phrase in sought.phrases)
    missing = lacks(tokens, phrases)
    assert set(sought.missing(tokens)) == missing
    assert sought.met(progress) == (not missing)
    assert sought.onward(progress) == {phrase[begun(tokens, phrase)] for phrase in missing}
    assert sought.bank(progress) == tokens_met(tokens, phrases)


@given(
    st.dictionaries(st.integers(0, 5), st.lists(st.integers(), min_size=1, max_size=5), max_size=4),
    st.integers(0, 12),
)
def test_banks_are_dealt_as_evenly_as_can_be(sizes, wanted):
    banks = {met: [(met, i) for i in range(len(some))] for met, some in sizes.items()}
    dealt = divide_beam(banks, wanted)
    assert len(dealt) == min(wanted, sum(map(len, banks.values())))
    for met, some in banks.items():
        mine = [item for item in dealt if item[0] == met]
        assert mine == some[: len(mine)]  # the best of the bank
        if len(mine) < len(some):  # others got at most one more, and only if they are fuller
            shares = {other: sum(item[0] == other for item in dealt) for other in banks}
            assert all(share - len(mine) <= (other > met) for other, share in shares.items())
