"""Candidates: their probabilities in every family, their rewards, and the parts of a loss."""

import numpy as np
import pytest
import torch

from heedful.data.batching import Collator
from heedful.model.contracts import search_flops, training_flops
from heedful.model.flops import RowLengths
from heedful.search.length import LengthLimit
from heedful.search.rules import AllowedTokens
from heedful.search.settings import SearchOptions
from heedful.training.objective.candidates import (
    Judge,
    OwnTranslation,
    candidate_log_probabilities,
)
from heedful.training.objective.likelihood import Likelihood
from heedful.training.objective.reward import ExpectedReward
from heedful.training.objective.risk import MinimumRisk
from tests.support.models import FAMILIES, small

# three words besides the end symbol, 3
ALLOWED = AllowedTokens(6, (0, 2))
PAIRS = [[4, 5], [5, 5, 4], [1, 4], [5], [4, 4, 1, 5]]
ROWS = np.array([40, 7, 19, 3, 8])


def letters(ids):
    return " ".join("abcdefghijklmnopqrst"[number] for number in ids)


def share_of_words(texts, reference):
    """A reward: words of the reference, and a little for length, so that few are equal."""
    words = reference.split()
    return [sum(w in words for w in t.split()) / 4 + len(t) / 50 for t in texts]


def objective(kind="reward", metric=share_of_words, **changes):
    shared = {
        "judge": Judge(letters, metric),
        "candidates": 4,
        "likelihood_weight": 0.1,
        "limit": LengthLimit.parse("3"),
        "allowed": ALLOWED,
        "micro_batch_tokens": 1000,
    }
    if kind == "reward":
        return ExpectedReward(**{**shared, "seed": 1, **changes})
    search = SearchOptions(beam=4, n_best=4)
    of_risk = {"search": search, "sharpness": 1.0, "with_reference": False}
    return MinimumRisk(**{**shared, **of_risk, **changes})


def batch_of(pairs=PAIRS):
    return Collator(0, 2, 3).batch(pairs, pairs)


def gradient(chosen, model, pairs=PAIRS, rows=ROWS, step=1):
    """The gradient of all parts together, as one vector, and their sums."""
    model.zero_grad()
    sums = []
    for part in chosen.parts(model, batch_of(pairs), rows, step):
        part.loss.backward()
        sums.append(part.read_sums())
    flat = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    return torch.cat(flat), sums


@pytest.mark.parametrize("family", FAMILIES)
def test_probabilities_are_those_of_a_search_among_what_it_may_generate(family):
    model = small(**FAMILIES[family])
    source = torch.tensor([[4, 5, 3], [5, 3, 0], [4, 5, 3]])
    candidates = [OwnTranslation((5, 1, 4)), OwnTranslation(()), OwnTranslation((4, 4), False)]
    found = candidate_log_probabilities(model, source, candidates, ALLOWED).tolist()
    for row, (tokens, ended) in enumerate(candidates):
        with torch.inference_mode():
            state = model.start(model.encode(source[row : row + 1]))
            total, newest = 0.0, model.start_token
            for token in [*tokens, *([3] if ended else [])]:
                states, state = model.step(state, torch.tensor([newest]))
                scores = model.project(states)[0]
                among = torch.log_softmax(scores[[1, 3, 4, 5]], dim=0)
                total += float(among[[1, 3, 4, 5].index(token)])
                newest = token
        assert found[row] == pytest.approx(total, abs=2e-5)


@pytest.mark.parametrize("kind", ["reward", "risk"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_learns_from_its_own_translations(family, kind):
    model = small(**FAMILIES[family], dropout=0.5).train()
    before, sums = gradient(objective(kind), model)
    assert model.training
    assert torch.isfinite(before).all() and float(before.norm()) > 0.0
    assert sum(part.pairs for part in sums) == len(PAIRS)
    # without dropout, so a second time is the same; and from the weights of now, not from kept ones
    again, _ = gradient(objective(kind), model)
    assert torch.equal(before, again)
    with torch.no_grad():
        for weight in model.parameters():
            weight.data.mul_(0.5)
    fresh = small(**FAMILIES[family], dropout=0.5)
    fresh.load_state_dict(model.state_dict())
    changed, _ = gradient(objective(kind), model)
    expected, _ = gradient(objective(kind), fresh)
    assert torch.equal(changed, expected) and not torch.equal(changed, before)


@pytest.mark.parametrize("kind", ["reward", "risk"])
def test_equal_rewards_leave_the_likelihood_alone(kind):
    model = small()
    constant = objective(kind, lambda texts, reference: [0.25 for _ in texts])
    found, sums = gradient(constant, model)
    expected, (plain,) = gradient(Likelihood(weight=0.1), model)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    # the value: a tenth of the loss of the references, and 1 - 0.25 for each pair
    assert sum(part.loss for part in sums) == pytest.approx(plain.loss + 0.75 * len(PAIRS))
    assert sum(part.nll for part in sums) == pytest.approx(plain.nll)
    figure = sum(part.figure for part in sums) / len(PAIRS)
    assert figure == pytest.approx(0.25 if kind == "reward" else 0.75)


@pytest.mark.parametrize("kind", ["reward", "risk"])
def test_the_gradient_of_a_batch_is_the_sum_over_its_parts(kind):
    model = small()
    whole, one = gradient(objective(kind), model)
    cut, many = gradient(objective(kind, micro_batch_tokens=1), model)
    torch.testing.assert_close(cut, whole, atol=1e-6, rtol=1e-4)
    assert (len(one), len(many)) == (2, 1 + len(PAIRS))
    first, _ = gradient(objective(kind), model, PAIRS[:2], ROWS[:2])
    rest, _ = gradient(objective(kind), model, PAIRS[2:], ROWS[2:])
    torch.testing.assert_close(first + rest, whole, atol=1e-6, rtol=1e-4)
    # in another order
    turned, _ = gradient(objective(kind), model, PAIRS[::-1], ROWS[::-1])
    torch.testing.assert_close(turned, whole, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("kind", ["reward", "risk"])
def test_a_candidate_is_at_most_as_long_as_a_translation(kind, monkeypatch):
    model, seen = small(), []
    chosen = objective(kind, limit=LengthLimit.parse("input+2"))
    propose = chosen.propose

    def recorded(model, source, limits, *rest):
        seen.extend(limits)
        return propose(model, source, limits, *rest)

    monkeypatch.setattr(chosen, "propose", recorded)
    gradient(chosen, model)
    assert seen == [len(pair) + 2 for pair in PAIRS]  # the end symbol of a source is not counted


def test_equal_texts_are_judged_once():
    asked = []

    def metric(texts, reference):
        asked.append((list(texts), reference))
        return [len(text) / 10 for text in texts]

    judge = Judge(letters, metric)
    found = judge([OwnTranslation((4,)), OwnTranslation((5, 4)), OwnTranslation((4,))], [5])
    assert found == [0.1, 0.3, 0.1]
    assert asked == [(["e", "f e"], "f")]


def test_a_failure_leaves_the_model_in_training():
    model = small().train()

    def broken(texts, reference):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        gradient(objective(metric=broken), model)
    assert model.training


def test_the_operations_of_samples_and_of_their_scoring_are_counted(monkeypatch):
    model, chosen = small(), objective()
    drawn = [[OwnTranslation((4,) * length) for length in (0, 2, 1, 3)] for _ in PAIRS]
    monkeypatch.setattr(chosen, "propose", lambda *arguments: drawn)
    _, (references, samples) = gradient(chosen, model)
    assert references.flops == 0  # the trainer counts the pass over the references
    sources = [len(pair) + 1 for pair in PAIRS]
    nothing = [0] * len(sources)
    encoding = search_flops(model, sources, nothing)
    decoding = sum(search_flops(model, sources, [steps] * len(sources)) for steps in (1, 3, 2, 4))
    repeated = RowLengths.unpadded([length for length in sources for _ in range(4)])
    scoring = training_flops(model, repeated, RowLengths.unpadded([1, 3, 2, 4] * len(sources)))
    assert samples.needed_flops == decoding - 3 * encoding + scoring
    assert samples.flops >= samples.needed_flops  # some kernels compute padding


def test_the_operations_of_a_beam_are_counted(monkeypatch):
    model, chosen = small(), objective("risk", with_reference=True)
    found = [[OwnTranslation((4,)), OwnTranslation((5, 1, 4))] for _ in PAIRS]
    monkeypatch.setattr(chosen, "propose", lambda *arguments: found)
    _, (_, listed) = gradient(chosen, model)
    sources = [len(pair) + 1 for pair in PAIRS]
    searched = search_flops(model, sources, [4] * len(sources), 4)
    scored = [  # the reference is scored, but was not searched for
        (length, len(tokens) + 1)
        for pair, length in zip(PAIRS, sources, strict=True)
        for tokens in dict.fromkeys([(4,), (5, 1, 4), tuple(pair)])
    ]
    scoring = training_flops(model, *map(RowLengths.unpadded, zip(*scored, strict=True)))
    assert listed.needed_flops == searched + scoring


@pytest.mark.parametrize("reference", [True, False])
def test_a_search_that_finds_nothing_gives_an_undefined_loss(reference):
    model, chosen = small(), objective("risk", with_reference=reference)
    with torch.no_grad():
        model.output.weight.fill_(float("nan"))
    _, (_, sums) = gradient(chosen, model)
    assert sums.loss != sums.loss  # not a number: the trainer stops with its message
    assert sums.pairs == len(PAIRS)
