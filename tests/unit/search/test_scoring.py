"""Forced decoding in one pass, against a search that is forced step by step."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.config.model import ModelConfig
from heedful.data.batching import Collator
from heedful.families.build import build_model
from heedful.model.initialize import initialize
from heedful.search.ensemble import Ensemble
from heedful.search.rules import AllowedTokens
from heedful.search.scoring import best_candidates, pair_log_probabilities, target_ranks

VOCABULARY, REAL = 16, 13
IDS = st.lists(st.integers(4, REAL - 1), max_size=6)
PAIRS = st.lists(st.tuples(IDS.filter(bool), IDS), min_size=1, max_size=4)


@pytest.fixture(scope="module")
def model():
    shape = {"d_model": 8, "d_ff": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 2}
    model = build_model(ModelConfig(**shape), VOCABULARY, VOCABULARY, max_length=9)
    initialize(model, 5)
    with torch.no_grad():
        model.embed_target.weight.mul_(3.0)
    return model.eval()


@torch.inference_mode()
def step_by_step(model, source, target):
    """Write a given target with the steps of a search; the slow twin."""
    state = model.start(model.encode(torch.tensor([[*source, model.end_token]])))
    token, found = model.start_token, []
    for wanted in [*target, model.end_token]:
        states, state = model.step(state, torch.tensor([token]))
        table = torch.log_softmax(model.project(states)[0], dim=-1).tolist()
        ahead = [number for number in range(REAL) if table[number] > table[wanted]]
        found.append((table[wanted], len(ahead) + 1))
        token = wanted
    return found


@settings(max_examples=8)
@given(PAIRS)
def test_one_pass_over_many_pairs_is_each_pair_step_by_step(model, pairs):
    collator = Collator(model.padding, model.start_token, model.end_token)
    sources, targets = [s for s, _ in pairs], [t for _, t in pairs]
    log_probabilities = pair_log_probabilities(model, collator, sources, targets)
    batch = collator.batch(sources, targets)
    tensors = (batch.source, batch.target_in, batch.target_out)
    ranks = target_ranks(model, *tensors, REAL)
    assert target_ranks(Ensemble([model]), *tensors, REAL) == ranks
    for (source, target), logs, places in zip(pairs, log_probabilities, ranks, strict=True):
        twin = step_by_step(model, source, target)
        assert logs == pytest.approx([log for log, _ in twin], abs=1e-5)
        assert places == [place for _, place in twin]


def test_ranks_are_the_same_in_small_parts(model, monkeypatch):
    collator = Collator(model.padding, model.start_token, model.end_token)
    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(4, REAL, (30, 8), generator=generator).tolist()
    batch = collator.batch(rows, rows)
    tensors = (batch.source, batch.target_in, batch.target_out)
    whole = target_ranks(model, *tensors, REAL)
    monkeypatch.setattr("heedful.kernels.loss._CHUNK_LOGITS", 1)
    assert target_ranks(model, *tensors, REAL) == whole
    assert {rank for row in whole for rank in row} <= set(range(1, REAL + 1))
    assert len({rank for row in whole for rank in row}) > 5


@settings(max_examples=20)
@given(IDS.filter(bool), IDS, st.integers(1, 12))
def test_the_best_candidates_are_those_of_a_search_that_is_told_what_to_write(
    model, source, target, wanted
):
    batch = Collator(model.padding, model.start_token, model.end_token).batch([source], [target])
    rules = [AllowedTokens(REAL, (model.padding, 2))]
    pair = batch.source, batch.target_in, batch.target_out
    found = best_candidates(model, *pair, rules=rules, wanted=wanted)
    twice = best_candidates(Ensemble([model, model]), *pair, rules=rules, wanted=wanted)
    given_tokens = [*target, model.end_token]
    state = model.start(model.encode(batch.source))
    token = model.start_token
    for row, other, wanted_token in zip(found, twice, given_tokens, strict=True):
        with torch.inference_mode():
            states, state = model.step(state, torch.tensor([token]))
            table = torch.softmax(model.project(states)[0], dim=-1).tolist()
        allowed = [number for number in range(REAL) if number not in (model.padding, 2)]
        best = sorted((-table[number], number) for number in allowed)[:wanted]
        expected = [(number, -probability) for probability, number in best]
        if wanted_token not in dict(expected):
            expected.append((wanted_token, table[wanted_token]))
        assert [number for number, _ in row] == [number for number, _ in expected]
        for shown in (row, other):
            assert dict(shown) == pytest.approx(dict(expected), abs=1e-5)
        token = wanted_token
