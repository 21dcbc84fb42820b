"""Rules for the next token, against plain loops and exhaustive search."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.search.beam import beam_search
from heedful.search.greedy import greedy_search
from heedful.search.rules import (
    AllowedTokens,
    AvoidPhrases,
    DecodingRule,
    ForcedPrefix,
    MinLength,
    NoRepeatNgram,
    apply_all,
)
from heedful.search.settings import SearchOptions
from tests.support.exhaustive_search import (
    END,
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


def repeats(tokens, size):
    grams = [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)]
    return len(set(grams)) < len(grams)


def every_sequence_that(keeps, model, limit=4):
    expected = every_sequence(model, SOURCE, limit, PENALTIES[1])
    kept = [entry for entry in expected if keeps(entry[1])]
    assert len(kept) < len(expected)
    return kept[:5]


def search_widely(rule, model, limit=4):
    options = {
        "settings": SearchOptions(beam=100, length_penalty=str(PENALTIES[1]), n_best=5),
        "rules": [*RULES, rule],
    }
    return beam_search(model, SOURCE, [limit], **options)[0]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_n_gram_occurs_twice(tiny, size):
    model = tiny(size)
    expected = every_sequence_that(lambda tokens: not repeats(tokens, size), model)
    is_close(search_widely(NoRepeatNgram(size), model), expected)


@pytest.mark.parametrize("prefix", [(5,), (1, 4), (4, 4, 4, 4)])
def test_a_translation_begins_with_its_prefix(tiny, prefix):
    model = tiny(3)
    expected = every_sequence_that(lambda tokens: tokens[: len(prefix)] == prefix, model)
    is_close(search_widely(ForcedPrefix([prefix]), model), expected)


@pytest.mark.parametrize("least", [1, 2, 3])
def test_no_translation_ends_too_early(tiny, least):
    model = tiny(3)
    expected = every_sequence_that(lambda tokens: len(tokens) >= least, model, 3)
    is_close(search_widely(MinLength(least, END), model, 3), expected)


@pytest.mark.parametrize("phrases", [[(4,)], [(1, 5), (5, 5, 4)], [(4, 1), (1, 4), ()]])
def test_a_phrase_is_avoided(tiny, phrases):
    model, sought = tiny(4), [phrase for phrase in phrases if phrase]
    expected = every_sequence_that(
        lambda tokens: not any(contains(tokens, phrase) for phrase in sought), model
    )
    is_close(search_widely(AvoidPhrases([phrases]), model), expected)


texts = st.integers(0, 7).flatmap(
    lambda length: st.lists(
        st.lists(st.integers(3, 6), min_size=length, max_size=length), min_size=1, max_size=6
    )
)


@settings(max_examples=60)
@given(texts, st.integers(1, 4), st.data())
def test_rules_forbid_what_plain_loops_forbid(written, size, data):
    sentences = [data.draw(st.integers(0, 2)) for _ in written]
    some = st.lists(st.lists(st.integers(3, 6), max_size=3), max_size=3)
    phrases = [data.draw(some) for _ in range(3)]
    rows = torch.tensor(written, dtype=torch.long).view(len(written), -1)

    def forbidden(rule):
        scores = rule(torch.zeros(len(written), 8), rows, torch.tensor(sentences))
        return [
            {t for t in range(8) if scores[row, t] == float("-inf")} for row in range(len(rows))
        ]

    by_loop = [
        {
            token
            for token in range(8)
            if any(
                text[start : start + size] == [*text[len(text) - size + 1 :], token]
                for start in range(len(text) - size + 1)
            )
        }
        for text in written
    ]
    assert forbidden(NoRepeatNgram(size)) == by_loop
    by_loop = [
        {
            phrase[-1]
            for phrase in phrases[sentence]
            if phrase and text[max(0, len(text) - len(phrase) + 1) :] == phrase[:-1]
        }
        for text, sentence in zip(written, sentences, strict=True)
    ]
    assert forbidden(AvoidPhrases(phrases)) == by_loop


def test_each_sentence_of_a_batch_has_its_own_prefix_and_phrases(tiny):
    model = tiny(7, vocabulary=12)
    source, limits = batch_of_five(7)
    prefixes = [[5, 6, 7], [], [9], [], [4, 4]]
    phrases = [[[8]], [[9, 9], [4]], [], [[5]], [[4, 5], [4, 6], [6]]]

    def search(source, limits, rules):
        rules = [*RULES, *rules, NoRepeatNgram(3)]
        wide = beam_search(
            model,
            source,
            limits,
            SearchOptions(beam=3, length_penalty=str(PENALTIES[1])),
            rules=rules,
        )
        return [best for (best,) in wide], greedy_search(
            model, source, limits, SearchOptions(length_penalty=str(PENALTIES[1])), rules=rules
        )

    together = search(source, limits, [ForcedPrefix(prefixes), AvoidPhrases(phrases)])
    for row, limit in enumerate(limits):
        own = [ForcedPrefix([prefixes[row]]), AvoidPhrases([phrases[row]])]
        single = search(alone(source, row), [limit], own)
        for found, (expected,) in zip(together, single, strict=True):
            assert found[row].tokens == expected.tokens
            assert found[row].score == pytest.approx(expected.score, abs=1e-4)
            assert list(found[row].tokens[: len(prefixes[row])]) == prefixes[row]
            assert not any(contains(found[row].tokens, phrase) for phrase in phrases[row])


def test_greedy_search_takes_the_best_token_that_the_rules_leave(tiny):
    model = tiny(5, vocabulary=9)
    rules = [*RULES, ForcedPrefix([(4, 6)]), NoRepeatNgram(2)]
    (found,) = greedy_search(
        model, SOURCE, [8], SearchOptions(length_penalty=str(PENALTIES[0])), rules=rules
    )
    tokens = []
    for position, score in enumerate(found.log_probabilities):
        table = log_probabilities(model, SOURCE, torch.tensor([[2, *tokens]]))[0, -1].tolist()
        left = [t for t in range(9) if t not in (0, 2) and not repeats([*tokens, t], 2)]
        best = (4, 6)[position] if position < 2 else max(left, key=lambda t: table[t])
        assert table[best] == pytest.approx(score, abs=1e-4)
        tokens.append(best)
    assert tuple(tokens[: len(found.tokens)]) == found.tokens
    assert len(tokens) > 4


def test_forced_tokens_keep_the_log_probabilities_of_the_model(tiny):
    model = tiny(2)
    found = search_widely(ForcedPrefix([(5, 4, 5)]), model)[0]
    target_in = torch.tensor([[2, *found.tokens]])
    table = log_probabilities(model, SOURCE, target_in)[0]
    each = [float(table[i, t]) for i, t in enumerate([*found.tokens, END])]
    assert found.log_probabilities == pytest.approx(each, abs=1e-4)


@pytest.mark.parametrize("limit", [0, 2])
def test_a_prefix_is_cut_at_the_limit(tiny, limit):
    rules = [*RULES, ForcedPrefix([(5, 4, 5)])]
    settings = SearchOptions(beam=3, length_penalty=str(PENALTIES[1]))
    (found,) = beam_search(tiny(1), SOURCE, [limit], settings, rules)
    (greedy,) = greedy_search(tiny(1), SOURCE, [limit], settings, rules)
    for hypothesis in (found[0], greedy):
        assert (hypothesis.tokens, hypothesis.ended) == ((5, 4, 5)[:limit], False)


def test_a_prefix_may_repeat_itself_and_hold_what_is_avoided(tiny):
    prefix = (4, 4, 4)
    rules = [*RULES, ForcedPrefix([prefix]), AvoidPhrases([[(4,)]]), NoRepeatNgram(1)]
    for best in (
        beam_search(
            tiny(6),
            SOURCE,
            [8],
            SearchOptions(beam=3, length_penalty=str(PENALTIES[1])),
            rules=rules,
        )[0][0],
        greedy_search(
            tiny(6), SOURCE, [8], SearchOptions(length_penalty=str(PENALTIES[1])), rules=rules
        )[0],
    ):
        assert best.tokens[:3] == prefix
        assert 4 not in best.tokens[3:]
        assert not repeats(best.tokens[3:], 1)


def test_rules_are_applied_in_order_to_the_same_scores():
    rules = [AllowedTokens(7, (0,)), NoRepeatNgram(1)]
    assert all(isinstance(rule, DecodingRule) for rule in rules)
    scores = apply_all(rules, torch.zeros(1, 8), torch.tensor([[5]]), torch.tensor([0]))
    assert scores.isneginf().nonzero()[:, 1].tolist() == [0, 5, 7]


def test_a_rule_that_a_search_has_used_has_gradients():
    rule = AllowedTokens(5, (0, 1))
    with torch.inference_mode():
        rule(torch.zeros(2, 8), torch.zeros(2, 0).long(), torch.arange(2))
    scores = torch.zeros(2, 8, requires_grad=True)
    rule(scores.clone(), torch.zeros(2, 0).long(), torch.arange(2))[:, 2].sum().backward()
    assert scores.grad is not None
    assert scores.grad[:, 2].tolist() == [1.0, 1.0]
