"""Role heads: gold answers of the grammar, and heads rated by plain loops."""

import numpy as np
import pytest

from heedful.data.toy_grammar.corpus import sample_pairs
from heedful.data.toy_grammar.roles import sample_roles
from heedful.paper.role_heads import choose_and_rate, rate_heads


def looks(*shape):
    random = np.random.default_rng(1).random(shape)
    return random / random.sum(axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def drawn():
    return sample_roles(90, seed=4)


def test_heads_are_rated_as_a_plain_loop_rates_them():
    weights, asking, answers = looks(3, 4, 7, 7), (2, 5), (0, 6)
    rated = rate_heads(weights, asking, answers)
    assert [one.weight for one in rated] == sorted((one.weight for one in rated), reverse=True)
    assert len({(one.layer, one.head) for one in rated}) == 12
    for one in rated:
        head = weights[one.layer - 1, one.head - 1]
        on_answers = [head[row][0] + head[row][6] for row in range(7)]
        assert one.weight == pytest.approx((on_answers[2] + on_answers[5]) / 2)
        assert one.others == pytest.approx(np.mean([on_answers[row] for row in (0, 1, 3, 4, 6)]))
        ranks = [sum(head[row] > max(head[row][0], head[row][6])) + 1 for row in asking]
        assert one.rank == max(ranks)


def test_the_one_head_that_looks_at_the_answer_is_first():
    weights = np.full((2, 2, 4, 4), 0.25)
    weights[1, 0, 2] = [0.0, 1.0, 0.0, 0.0]
    best = rate_heads(weights, (2,), (1,))[0]
    assert (best.layer, best.head, best.weight, best.others, best.rank) == (2, 1, 1.0, 0.25, 1)


def test_the_grammar_says_who_did_what_to_whom(drawn):
    found = drawn
    assert found[:9] == sample_roles(9, seed=4)
    assert len({sentence.text for sentence in found}) == len(found) == 90
    known = {
        (sentence.text.split()[sentence.subject], sentence.text.split()[sentence.object])
        for sentence in found
    }
    assert not {"the", "a", "not", "did", "does"} & {word for pair in known for word in pair}
    for sentence in found:
        words = sentence.text.split()
        assert sentence.subject < sentence.verb < sentence.object < len(words)
        if sentence.pronoun is not None:
            assert words[sentence.pronoun] in ("it", "him", "her", "them")
            assert sentence.pronoun > sentence.object
        assert words[sentence.verb] not in ("do", "does", "did", "not", "the", "who", "that")


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ("he loves the schools but does not find them", "he loves schools them"),
        ("the kings hear my green owl and find it", "kings hear owl it"),
        ("the birds do not follow the cat", "birds follow cat"),
        ("a king who does not laugh buys the big eggs", "king buys eggs"),
        ("this woman does not buy the keys that the owl bought", "woman buy keys"),
        ("we do not find him", "we find him"),
    ],
)
def test_roles_are_those_that_one_sees(drawn, text, roles):
    (found,) = (one for one in drawn if one.text == text)
    words = text.split()
    places = [found.subject, found.verb, found.object]
    places += [] if found.pronoun is None else [found.pronoun]
    assert [words[place] for place in places] == roles.split()


def test_sentences_without_an_object_have_no_roles(drawn):
    texts = {source for source, _ in sample_pairs(270, seed=4)}
    assert {one.text for one in drawn} < texts


def test_a_head_is_chosen_on_one_half_and_rated_on_the_other():
    looked, answers, asking = [], np.array([0, 1, 0, 3, 0, 1]), np.array([2, 2, 2, 2, 1, 2])
    for number, answer in enumerate(answers):
        look = np.full((1, 2, 4), 0.25)
        # The first head is right in the first half only, the second a little less, but always.
        look[0, 0] = np.eye(4)[answer if number < 3 else (answer + 1) % 4]
        look[0, 1] = 0.1
        look[0, 1, answer] = 0.7
        looked.append(look)
    found = choose_and_rate("who", looked, answers, asking)
    assert (found.layer, found.head, found.weight, found.right) == (1, 1, 0.0, 0.0)
    assert (found.offset, found.by_offset, found.even, found.sentences) == (-2, 0.0, 0.25, 3)
