"""GNMT's coverage penalty, compared with the best of all sequences."""

import math
from collections import defaultdict

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import SettingError
from heedful.search.beam import beam_search
from heedful.search.constrained import constrained_beam_search
from heedful.search.coverage import check_coverage, coverage_logs
from heedful.search.diverse import diverse_beam_search
from heedful.search.ensemble import Ensemble
from heedful.search.observer import Snapshot
from heedful.search.rules import MinLength
from heedful.search.settings import SearchOptions
from tests.support.exhaustive_search import (
    END,
    PENALTIES,
    RULES,
    alone,
    batch_of_five,
    every_sequence,
    is_close,
    tiny,
)

pytestmark = pytest.mark.family("recurrent")
BETAS = [0.2, 2.0]
TEXT = torch.tensor([[4, 5, 4, END]])


def recurrent(seed, vocabulary=6, **changes):
    families = {"encoder": "recurrent", "decoder": "recurrent"}
    return tiny(seed, vocabulary, **families, recurrent={"initial_range": 1.0, **changes})


def penalties_of(model, source, texts, beta):
    """Equation 14 in plain numbers, for known targets of one length; the source is unpadded."""
    target_in = torch.tensor([[model.start_token, *tokens] for tokens in texts])
    with torch.no_grad():
        (weights,) = model.attention(source.expand(len(texts), -1), target_in).cross
    sums = weights[:, 0].sum(dim=1).tolist()  # over the target steps
    return [beta * sum(math.log(min(total, 1.0)) for total in row) for row in sums]


def with_coverage(model, source, sequences, beta):
    """Add the penalties to the scores of sequences; best first."""
    of_length, found = defaultdict(list), []
    for entry in sequences:
        of_length[len(entry[1])].append(entry)
    for entries in of_length.values():
        penalties = penalties_of(model, source, [tokens for _, tokens, _ in entries], beta)
        for (score, tokens, each), penalty in zip(entries, penalties, strict=True):
            found.append((score + penalty, tokens, each))
    return sorted(found, reverse=True)


PREVIOUS = {"query": "previous", "feed": "context", "readout": "maxout", "cell": "gru"}
CASES = [(penalty, beta, {}) for beta in BETAS for penalty in PENALTIES]
CASES.append((PENALTIES[-1], BETAS[-1], PREVIOUS))
OTHERS = [
    pytest.param(penalty, beta, PREVIOUS, marks=pytest.mark.soak)
    for beta in BETAS
    for penalty in PENALTIES
    if (penalty, beta) != (PENALTIES[-1], BETAS[-1])
]


@pytest.mark.parametrize(("penalty", "beta", "wiring"), CASES + OTHERS)
def test_a_wide_beam_finds_the_best_of_all_sequences(penalty, beta, wiring):
    changed = 0
    for seed in range(2):
        model = recurrent(seed, **wiring)
        plain = every_sequence(model, TEXT, 3, penalty)
        every = with_coverage(model, TEXT, plain, beta)
        asked = SearchOptions(
            beam=200, length_penalty=str(penalty), n_best=4, coverage_penalty=beta
        )
        (found,) = beam_search(model, TEXT, [3], asked, rules=RULES)
        is_close(found, every[:4])
        changed += [tokens for _, tokens, _ in plain[:4]] != [h.tokens for h in found]
    assert changed or beta < 1.0 or wiring  # the penalty is felt


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_shortest_length_and_the_n_best_list_go_together(penalty):
    model = recurrent(1)
    asked = SearchOptions(beam=200, length_penalty=str(penalty), n_best=3, coverage_penalty=1.0)
    (found,) = beam_search(model, TEXT, [3], asked, rules=[*RULES, MinLength(2, END)])
    every = with_coverage(model, TEXT, every_sequence(model, TEXT, 3, penalty), 1.0)
    is_close(found, [entry for entry in every if len(entry[1]) >= 2][:3])


@settings(max_examples=12)
@given(st.integers(0, 50), st.integers(2, 5), st.sampled_from(PENALTIES), st.sampled_from(BETAS))
def test_padding_and_other_sentences_do_not_count(seed, beam, penalty, beta):
    model = recurrent(seed, vocabulary=12)
    source, limits = batch_of_five(seed)
    asked = SearchOptions(
        beam=beam, length_penalty=str(penalty), n_best=min(beam, 2), coverage_penalty=beta
    )
    together = beam_search(model, source, limits, asked, rules=RULES)
    for row, limit in enumerate(limits):
        text = alone(source, row)
        (single,) = beam_search(model, text, [limit], asked, rules=RULES)
        assert [h.tokens for h in together[row]] == [h.tokens for h in single]
        for one in together[row]:
            assert one.score == pytest.approx(
                whole_score(model, text, one, penalty, beta), abs=1e-3
            )


def whole_score(model, source, found, penalty, beta):
    """The score of a hypothesis, ended or cut, from its tokens."""
    length = len(found.tokens) + found.ended
    if not length:
        return 0.0
    steps = found.tokens if found.ended else found.tokens[:-1]
    divided = sum(found.log_probabilities) / penalty.divisor(length)
    return divided + penalties_of(model, source, [steps], beta)[0]


@pytest.mark.parametrize("stop", ["when-none-can-win", "when-beam-finished", "as-joey"])
@pytest.mark.parametrize("policy", ["cut", "end", "keep"])
def test_every_way_to_end_has_the_penalty_of_its_steps(stop, policy):
    model, penalty = recurrent(3, vocabulary=12), PENALTIES[1]
    source = torch.tensor([[4, 9, 7, 5, END]])
    for limit in (1, 4):
        asked = SearchOptions(
            beam=4,
            n_best=4,
            length_penalty=str(penalty),
            stop=stop,
            length_limit_policy=policy,
            coverage_penalty=0.7,
        )
        (found,) = beam_search(model, source, [limit], asked, rules=RULES)
        assert found
        for one in found:
            assert one.score == pytest.approx(
                whole_score(model, source, one, penalty, 0.7), abs=1e-4
            )


def test_groups_and_phrases_keep_the_penalty():
    model, penalty = recurrent(2, vocabulary=12), PENALTIES[1]
    source, limits = batch_of_five(2)
    asked = SearchOptions(beam=6, n_best=3, length_penalty=str(penalty), coverage_penalty=0.5)
    in_groups = SearchOptions(
        beam=6, n_best=3, length_penalty=str(penalty), coverage_penalty=0.5, diverse_groups=3
    )
    phrases = [[(7,)], [(8,)], [], [], [(9,)]]
    for found in (
        diverse_beam_search(model, source, limits, in_groups, RULES),
        constrained_beam_search(model, source, limits, asked, phrases, RULES),
    ):
        for row, hypotheses in enumerate(found):
            for one in hypotheses:
                wanted = whole_score(model, alone(source, row), one, penalty, 0.5)
                assert one.score == pytest.approx(wanted, abs=1e-4)


def test_an_observer_sees_the_scores_that_are_returned():
    model = recurrent(3, vocabulary=12)
    asked = SearchOptions(beam=3, n_best=3, coverage_penalty=1.0)
    seen: list[Snapshot] = []
    (found,) = beam_search(model, TEXT, [5], asked, rules=RULES, observer=seen.append)
    shown = {view.tokens: view.score for step in seen for view in (*step.ended, *step.cut)}
    for one in found:
        text = (*one.tokens, END) if one.ended else one.tokens
        assert shown[text] == pytest.approx(one.score, abs=1e-6)


def test_off_is_the_search_as_it_was():
    model = recurrent(4, vocabulary=12)
    source, limits = batch_of_five(4)
    off = SearchOptions(beam=4, n_best=4, coverage_penalty=0.0)
    every = beam_search(model, source, limits, off, rules=RULES)
    for hypotheses in every:
        for one in hypotheses:
            total = 0.0
            for score in one.log_probabilities:
                total += score
            length = max(1, len(one.tokens) + one.ended)
            assert one.score == total / off.penalty.divisor(length)


def test_a_position_without_attention_gives_a_number():
    real = torch.tensor([True, True, True, False])
    logs = coverage_logs(torch.tensor([0.0, 0.5, 1.7, 0.0]), real)
    assert logs[0].item() == pytest.approx(-87.3, abs=0.1)
    assert logs[1:].tolist() == pytest.approx([math.log(0.5), 0.0, 0.0])


def test_decoders_without_one_attention_are_refused():
    one = recurrent(1)
    check_coverage(0.2, [one])
    for models, told in (
        ([tiny(1)], "this decoder has one for each layer"),
        (
            [recurrent(1, score="none", feed="none", readout="state", start="final")],
            "this decoder has no attention",
        ),
        ([one, one], "in each of its 2 models"),
    ):
        check_coverage(0.0, models)
        with pytest.raises(SettingError, match=told):
            check_coverage(0.2, models)
    with pytest.raises(SettingError, match="an ensemble"):
        beam_search(Ensemble([one, one]), TEXT, [3], SearchOptions(coverage_penalty=0.2))
