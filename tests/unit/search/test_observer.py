"""An observed search: same result, every step shown, the tree of the exhaustive reference."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import SettingError
from heedful.search.beam import beam_search
from heedful.search.constrained import constrained_beam_search
from heedful.search.diverse import diverse_beam_search
from heedful.search.greedy import greedy_search
from heedful.search.observer import HypothesisView, Snapshot, offset_sentence
from heedful.search.sampling import sample
from heedful.search.settings import Sampling, SearchOptions
from heedful.search.stopping import StoppingPolicy
from heedful.search.trace import Trace
from heedful.translation.engine import check_engine
from tests.support.exhaustive_search import (
    END,
    FORBIDDEN,
    PENALTIES,
    RULES,
    alone,
    batch_of_five,
    log_probabilities,
)

KINDS = {
    "beam": (beam_search, {"beam": 3}, {}),
    "greedy": (greedy_search, {}, {}),
    "diverse": (diverse_beam_search, {"beam": 4, "diverse_groups": 2}, {}),
    "constrained": (
        constrained_beam_search,
        {"beam": 3},
        {"phrases": [[(7,)], [], [(5, 6)], [], []]},
    ),
    "sample": (sample, {"sample": Sampling(seed=3), "n_best": 2}, {}),
}


def tokens_of(branches, step, place):
    """Read a hypothesis of a tree from its end to its beginning."""
    found = []
    while place is not None:
        branch = branches[step][place]
        found.append(branch.token)
        step, place = step - 1, branch.parent
    return tuple(reversed(found))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_watching_changes_nothing_and_shows_every_sentence_to_its_end(tiny, kind, seed):
    model = tiny(seed, vocabulary=12)
    source, limits = batch_of_five(seed)
    search, changes, options = KINDS[kind]
    settings = SearchOptions(length_penalty=str(PENALTIES[1]), **changes)
    options = {**options, "settings": settings, "rules": RULES}
    seen = []
    assert search(model, source, limits, observer=seen.append, **options) == search(
        model, source, limits, **options
    )
    lanes = {(one.sentence, one.group) for one in seen}
    assert {sentence for sentence, _ in lanes} == set(range(5))
    for lane in lanes:
        own = [one for one in seen if (one.sentence, one.group) == lane]
        assert [one.step for one in own] == list(range(1, len(own) + 1))
        assert [one.done for one in own] == [False] * (len(own) - 1) + [True]
        assert own[-1].open == ()


@settings(max_examples=15)
@given(
    st.integers(0, 50),
    st.integers(1, 4),
    st.sampled_from(PENALTIES),
    st.sampled_from(
        ["when-none-can-win", "when-beam-finished", "as-transformers", "as-joey", "as-opennmt"]
    ),
    st.sampled_from(["cut", "keep"]),
)
def test_hypotheses_grow_from_those_before_and_the_best_is_found_again(
    tiny, seed, beam, penalty, stop, length_limit_policy
):
    model = tiny(seed, vocabulary=12)
    source, limits = batch_of_five(seed)
    trace, seen = Trace(), []

    def observer(snapshot):
        trace(snapshot)
        seen.append(snapshot)

    stopping = StoppingPolicy(stop=stop, length_limit_policy=length_limit_policy)
    found = beam_search(
        model,
        source,
        limits,
        SearchOptions(
            beam=beam,
            length_penalty=str(penalty),
            stop=stopping.stop,
            length_limit_policy=stopping.length_limit_policy,
        ),
        rules=RULES,
        observer=observer,
    )
    for row, (best,) in enumerate(found):
        own = [one for one in seen if one.sentence == row]
        for before, after in pairwise(own):
            for one in (*after.open, *after.ended, *after.dropped):
                parent = before.open[one.parent]
                assert one.tokens[:-1] == parent.tokens
                assert one.log_probability <= parent.log_probability
            for one in after.cut:
                assert one.tokens == before.open[one.parent].tokens
        assert all(len(one.open) <= beam for one in own)
        tokens, complete = trace.best(row)
        assert tokens == best.tokens + ((END,) if best.ended else ())
        tree = trace.tree(row)
        chosen = [
            (step, place)
            for step, branches in enumerate(tree)
            for place, branch in enumerate(branches)
            if branch.status == "best"
        ]
        assert complete or not best.ended
        if not tokens:  # cut before its first token, it stands nowhere
            assert not chosen
            continue
        assert len(chosen) == 1
        assert tokens_of(tree, *chosen[0]) == tokens
        branch = tree[chosen[0][0]][chosen[0][1]]
        assert branch.score == pytest.approx(best.score)
        assert branch.log_probability == pytest.approx(best.log_probability)


def slow_tree(model, source, limit, beam, penalty):
    """Search with plain lists and no cache: all candidates of each step, and their status."""
    vocabulary = log_probabilities(model, source, torch.tensor([[2]])).size(-1)
    allowed = [token for token in range(vocabulary) if token not in FORBIDDEN]
    open_ones, ended, steps = [((), 0.0)], {}, []
    for length in range(1, limit + 2):
        everything = []
        for tokens, total in open_ones:
            read = torch.tensor([[model.start_token, *tokens]])
            table = log_probabilities(model, source, read)[0, -1].tolist()
            everything += [((*tokens, token), total + table[token]) for token in allowed]
        everything.sort(key=lambda one: -one[1])
        weighed = everything[: 2 * beam]
        finished = [one for one in weighed[:beam] if one[0][-1] == END]
        kept = [one for one in weighed if one[0][-1] != END][:beam]
        ended |= {tokens: total / penalty.divisor(length) for tokens, total in finished}
        steps.append((weighed, finished, kept))
        best_possible = kept[0][1] / penalty.divisor(limit + 1)
        if ended and best_possible <= max(ended.values()):
            break
        before, open_ones = open_ones, kept
    best = max(ended, key=lambda tokens: ended[tokens]) if ended else before[0][0]
    found = []
    for step, (weighed, finished, kept) in enumerate(steps):
        after = steps[step + 1] if step + 1 < len(steps) else ([], [], [])
        parents = {tokens[:-1] for tokens, _ in (*after[1], *after[2])}
        fates = {}
        for one in weighed:
            fates[one[0]] = (
                "best"
                if one[0] == best
                else "ended"
                if one in finished
                else "open"
                if one in kept and one[0] in parents
                else "dropped"
            )
        found.append([(tokens, total, fates[tokens]) for tokens, total in weighed])
    return found


@settings(max_examples=25)
@given(st.integers(0, 200), st.integers(1, 4), st.sampled_from(PENALTIES), st.integers(0, 5))
def test_the_tree_is_that_of_a_search_with_plain_lists(tiny, seed, beam, penalty, limit):
    model = tiny(seed, vocabulary=9)
    source = torch.tensor([[4, 5, END]])
    trace = Trace()
    beam_search(
        model,
        source,
        [limit],
        SearchOptions(beam=beam, length_penalty=str(penalty)),
        rules=RULES,
        observer=trace,
    )
    tree = trace.tree()
    expected = slow_tree(model, source, limit, beam, penalty)
    assert len(tree) == len(expected)
    for step, (branches, wanted) in enumerate(zip(tree, expected, strict=True)):
        shown = [
            (tokens_of(tree, step, place), branch.status) for place, branch in enumerate(branches)
        ]
        assert shown == [(tokens, fate) for tokens, _, fate in wanted]
        for branch, (tokens, total, _) in zip(branches, wanted, strict=True):
            assert branch.log_probability == pytest.approx(total, abs=1e-4)
            assert branch.score == pytest.approx(total / penalty.divisor(len(tokens)), abs=1e-4)
            assert bool(branch.why) == (branch.status != "open")


def test_a_sentence_is_seen_in_a_batch_as_it_is_alone(tiny):
    model = tiny(4, vocabulary=12)
    source, limits = batch_of_five(4)
    options = {"settings": SearchOptions(beam=3, length_penalty=str(PENALTIES[1])), "rules": RULES}
    trace = Trace()
    beam_search(model, source, limits, observer=trace, **options)
    for row, limit in enumerate(limits):
        single = Trace()
        beam_search(model, alone(source, row), [limit], observer=single, **options)
        together, apart = trace.tree(row), single.tree()
        assert len(together) == len(apart)
        for some, others in zip(together, apart, strict=True):
            for one, other in zip(some, others, strict=True):
                assert replace(one, log_probability=0.0, score=0.0, why="") == replace(
                    other, log_probability=0.0, score=0.0, why=""
                )
                assert one.score == pytest.approx(other.score, abs=1e-4)


def test_groups_of_a_diverse_beam_stand_side_by_side_in_one_tree(tiny):
    model = tiny(1, vocabulary=12)
    source, limits = batch_of_five(1)
    trace = Trace()
    options = {
        "settings": SearchOptions(beam=4, diverse_groups=2, length_penalty=str(PENALTIES[1])),
        "rules": RULES,
    }
    diverse_beam_search(model, source, limits, observer=trace, **options)
    tree = trace.tree(0)
    for step, branches in enumerate(tree):
        texts = [tokens_of(tree, step, place) for place in range(len(branches))]
        assert all(len(text) == step + 1 for text in texts)
        assert {branch.parent for branch in branches} <= {None, *range(len(tree[step - 1]))}
    assert sum(branch.status == "best" for step in tree for branch in step) == 1


def test_what_the_watcher_raises_ends_the_search(tiny):
    def observer(snapshot):
        raise KeyboardInterrupt

    source, limits = batch_of_five(0)
    with pytest.raises(KeyboardInterrupt):
        greedy_search(
            tiny(0, vocabulary=12),
            source,
            limits,
            SearchOptions(length_penalty=str(PENALTIES[0])),
            rules=RULES,
            observer=observer,
        )


def test_another_engine_says_that_it_cannot_be_watched():
    with pytest.raises(SettingError, match="does not support --observer"):
        check_engine("ctranslate2", SearchOptions(), {"observer": print})


def test_rows_are_named_by_their_place_in_the_text():
    seen = []
    offset_sentence(seen.append, [7, 2])(Snapshot(1, 1, (HypothesisView(0, (4,), -1.0, -1.0),)))
    assert [one.sentence for one in seen] == [2]


def test_what_was_not_watched_to_its_end_has_no_tree():
    with pytest.raises(ValueError, match="sentence 3 must be recorded to its end"):
        Trace().tree(3)
