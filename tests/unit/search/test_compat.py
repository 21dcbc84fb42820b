"""The stopping rules of other toolkits."""

import pytest
import torch

from heedful.search.beam import beam_search
from heedful.search.compat import RULES as OTHERS
from heedful.search.hypothesis import Hypothesis, OpenHypothesis
from heedful.search.length import LengthPenalty
from heedful.search.rules import AllowedTokens
from heedful.search.search import run_search
from heedful.search.settings import SearchOptions
from heedful.search.stopping import BeamProgress, StoppingPolicy, stopping_rules
from tests.support.exhaustive_search import (
    END,
    FORBIDDEN,
    RULES,
    alone,
    batch_of_five,
    log_probabilities,
)

POWER = LengthPenalty("power", 1.0)
COMPLETE = [Hypothesis((4,), (-1.0, -1.0), -1.0, True), Hypothesis((5,), (-2.0, -2.0), -2.0, True)]


def test_the_rules_are_known_by_their_names_and_the_paper_s_is_the_first():
    assert [*stopping_rules()] == ["when-none-can-win", *(rule.name for rule in OTHERS)]


def may_improve(stop, best_open, length, limit, wanted):
    """Ask a rule about the two complete hypotheses and an open one."""
    hypothesis = OpenHypothesis([4], [best_open], best_open)
    progress = BeamProgress([hypothesis], COMPLETE, wanted, length, limit, POWER, END, set())
    return stopping_rules()[stop].goes_on(progress)


def test_best_looks_ahead_to_the_limit_and_the_others_do_not():
    assert may_improve("when-none-can-win", -9.0, 3, 10, 1)
    assert not may_improve("when-none-can-win", -11.0, 3, 10, 1)
    assert not may_improve("as-transformers", -9.0, 3, 10, 2)
    assert may_improve("as-transformers", -5.0, 3, 10, 2)
    assert not may_improve("when-beam-finished", -0.1, 3, 10, 2)


@pytest.mark.parametrize("stop", ["when-beam-finished", "as-transformers"])
def test_nothing_stops_before_the_beam_is_complete(stop):
    assert may_improve(stop, -99.0, 3, 10, 3)
    assert not may_improve(stop, float("-inf"), 3, 10, 3)


def slow_joey(model, source, limit, beam, penalties, least):
    """
    Search as Joey NMT 2.3 does, with plain lists: ended hypotheses keep their positions.

    The penalty chooses among those that are complete: returns the best by each.
    """
    texts, totals, complete, seen = [()], [0.0], [], set()
    for step in range(1, limit + 1):
        table = log_probabilities(
            model, source, torch.tensor([(model.start_token, *text) for text in texts])
        )[:, -1]
        table[:, list(FORBIDDEN)] = float("-inf")
        if step <= least:
            table[:, END] = float("-inf")
        weighed = [
            (total + score, (*text, token))
            for text, total, row in zip(texts, totals, table.tolist(), strict=True)
            for token, score in enumerate(row)
        ]
        best = sorted(weighed, key=lambda one: -one[0])[:beam]
        totals, texts = [total for total, _ in best], [text for _, text in best]
        for place, (total, text) in enumerate(best):
            if text[-1] == END or total == float("-inf"):
                seen.add(place)
            first_end = text[-1] == END and END not in text[:-1]
            if first_end or (step == limit and END not in text):
                complete.append((total, step, text))
        if len(seen) == beam:
            break
    return [
        max((total / penalty.divisor(step), text) for total, step, text in complete)
        for penalty in penalties
    ]


@pytest.mark.parametrize("least", [1, 3])
def test_joey_ends_when_every_place_of_the_beam_has_held_an_end(tiny, least):
    penalties, differ = [LengthPenalty("gnmt", alpha) for alpha in (0.0, 0.6, 2.0)], 0
    for seed in range(4):
        model = tiny(seed, vocabulary=12)
        source, _ = batch_of_five(seed)
        limits = [8, 3, 5, 4, 6]

        def found(stop, penalty, model=model, source=source, limits=limits):
            return run_search(
                model,
                source,
                limits,
                SearchOptions(
                    beam=3,
                    length_penalty=str(penalty),
                    stop=stop,
                    length_limit_policy="keep",
                    min_length=least,
                ),
                rules=[AllowedTokens(12, FORBIDDEN)],
            )

        expected = [
            slow_joey(model, alone(source, row), limit, 3, penalties, least)
            for row, limit in enumerate(limits)
        ]
        for number, penalty in enumerate(penalties):
            joeys = found("as-joey", penalty)
            for by_penalty, (best, *_) in zip(expected, joeys, strict=True):
                score, text = by_penalty[number]
                assert (*best.tokens, END)[: len(text)] == text
                assert best.score == pytest.approx(score, abs=1e-4)
        others = found("when-beam-finished", penalties[-1])
        differ += [ours.tokens for ours, *_ in joeys] != [other.tokens for other, *_ in others]
    assert differ  # with the largest penalty


def slow_opennmt(model, source, limit, beam, penalty, least):
    """
    Search as OpenNMT-py 3.5.1 does, with plain lists.

    BeamSearchBase: an end is never extended, and the best candidate that ends ends the search.
    """
    open_texts, complete = [((), 0.0)], []
    for step in range(1, limit + 1):
        table = log_probabilities(
            model, source, torch.tensor([(model.start_token, *text) for text, _ in open_texts])
        )[:, -1]
        table[:, list(FORBIDDEN)] = float("-inf")
        if step <= least:
            table[:, END] = float("-inf")
        weighed = [
            (total + score, (*text, token))
            for (text, total), row in zip(open_texts, table.tolist(), strict=True)
            for token, score in enumerate(row)
        ]
        best = sorted(weighed, key=lambda one: -one[0])[:beam]
        over = step == limit
        complete += [
            (total / penalty.divisor(step + 1), text)
            for total, text in best
            if text[-1] == END or over
        ]
        if over or best[0][1][-1] == END:
            break
        open_texts = [(text, total) for total, text in best if text[-1] != END]
    return max(complete)


@pytest.mark.parametrize("penalty", [LengthPenalty("none"), POWER, LengthPenalty("gnmt", 2.0)])
def test_opennmt_ends_when_the_best_of_a_step_ends(tiny, penalty):
    differ = 0
    for seed in (2, 3):  # where the other rule gives other translations
        model = tiny(seed, vocabulary=12)
        source, _ = batch_of_five(seed)
        limits = [8, 3, 5, 4, 6]

        def found(stop, model=model, source=source, limits=limits):
            stopping = StoppingPolicy(stop=stop, length_limit_policy="keep")
            return beam_search(
                model,
                source,
                limits,
                SearchOptions(
                    beam=3,
                    length_penalty=str(penalty),
                    stop=stopping.stop,
                    length_limit_policy=stopping.length_limit_policy,
                ),
                rules=RULES,
            )

        for row, ((best, *_), (other, *_)) in enumerate(
            zip(found("as-opennmt"), found("when-beam-finished"), strict=True)
        ):
            score, text = slow_opennmt(model, alone(source, row), limits[row], 3, penalty, 0)
            assert (*best.tokens, END)[: len(text)] == text
            assert best.score == pytest.approx(score, abs=1e-4)
            differ += best.tokens != other.tokens
    assert differ


def test_top_is_best_where_the_length_does_not_count():
    top = StoppingPolicy(stop="as-ctranslate2")
    assert top.resolved_for(LengthPenalty("none")).stop == "when-none-can-win"
    assert top.resolved_for(LengthPenalty("power", 0.0)).stop == "when-none-can-win"
    assert top.resolved_for(LengthPenalty("power", 1.0)).stop == "when-beam-finished"
    assert (
        StoppingPolicy(stop="as-transformers").resolved_for(LengthPenalty("none")).stop
        == "as-transformers"
    )
