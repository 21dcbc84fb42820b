"""A search with a cache that is never reordered finds what a search without a cache finds."""

from dataclasses import dataclass

import pytest
import torch

from heedful.kernels.native import product
from heedful.model.contracts import Seq2Seq
from heedful.model.kv_cache import KVCache
from heedful.search.beam import beam_search
from heedful.search.diverse import diverse_beam_search
from heedful.search.greedy import greedy_search
from heedful.search.settings import SearchOptions
from heedful.search.step import best_of_each
from tests.support.exhaustive_search import PENALTIES, RULES, batch_of_five, tiny


@dataclass
class Prefixes:
    """Remember only what was written; nothing is computed ahead."""

    source: torch.Tensor
    written: torch.Tensor

    def select(self, rows, sentences=None):
        source = self.source if sentences is None else self.source[sentences]
        return Prefixes(source, self.written[rows])


class Forgetful(Seq2Seq):
    """The slow twin: each step reads source and target from the beginning."""

    def __init__(self, model):
        super().__init__(model.padding, model.start_token, model.end_token)
        self.model = model

    def encode(self, source):
        return source

    def states(self, source, target_in):
        return self.model.states(source, target_in)

    def start(self, memory):
        return Prefixes(memory, memory.new_empty(len(memory), 0))

    def step(self, state, tokens):
        written = torch.cat([state.written, tokens.unsqueeze(1)], dim=1)
        width = len(tokens) // len(state.source)
        states = self.model.states(state.source.repeat_interleave(width, dim=0), written)
        return states[:, -1], Prefixes(state.source, written)

    @property
    def output(self):
        return self.model.output


def same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert [h.tokens for h in one] == [h.tokens for h in other]
        for a, b in zip(one, other, strict=True):
            assert a.log_probabilities == pytest.approx(b.log_probabilities, abs=1e-4)


def long_winded(seed):
    """A model whose translations go over several blocks of slots."""
    model = tiny(seed, vocabulary=12, output_bias=True, decoder_layers=2)
    with torch.no_grad():
        model.output.bias[model.end_token] = -2.0
    return model


@pytest.mark.parametrize(("seed", "beam"), [(0, 1), (1, 3), (0, 4), (2, 4)])
def test_a_beam_over_many_blocks_equals_one_without_a_cache(seed, beam):
    model = long_winded(seed)
    source, _ = batch_of_five(seed)
    limits = [40, 9, 33, 21, 2]
    options = {
        "settings": SearchOptions(beam=beam, length_penalty=str(PENALTIES[1]), n_best=beam),
        "rules": RULES,
    }
    found = beam_search(model, source, limits, **options)
    assert max(len(h.tokens) for some in found for h in some) > 30
    same(found, beam_search(Forgetful(model), source, limits, **options))


def test_other_searches_over_many_blocks_do_so_too():
    model = long_winded(5)
    source, _ = batch_of_five(5)
    limits = [26, 9, 23, 17, 2]
    options = {"settings": SearchOptions(length_penalty=str(PENALTIES[0])), "rules": RULES}
    found = greedy_search(model, source, limits, **options)
    expected = greedy_search(Forgetful(model), source, limits, **options)
    same([[one] for one in found], [[one] for one in expected])
    options["settings"] = SearchOptions(
        beam=4, diverse_groups=2, n_best=4, length_penalty=str(PENALTIES[0])
    )
    found = diverse_beam_search(model, source, limits, **options)
    same(found, diverse_beam_search(Forgetful(model), source, limits, **options))


def test_slots_that_nobody_descends_from_are_let_go():
    model = tiny(0)
    source = torch.tensor([[4, 5, 3], [5, 4, 3]])
    state = model.start(model.encode(source))
    tokens = torch.full((2,), model.start_token)
    with torch.inference_mode():
        for _ in range(100):
            _, state = model.step(state, tokens)
            state = state.select(
                torch.tensor(
                    [0, 0, 0, 0, 4, 4, 4, 4] if len(tokens) > 2 else [0, 0, 0, 0, 1, 1, 1, 1]
                )
            )
            tokens = torch.full((8,), 4)
    # four hypotheses that share all but their newest token: one slot a step, and room for 16 more
    assert state.cache.mask_bias.size(2) <= 100 + 4 * 16
    assert isinstance(state.cache, KVCache)


@pytest.mark.parametrize("vocabulary", [7, 40, 104, 1000, 4096])
@pytest.mark.parametrize("wanted", [1, 5, 8])
@pytest.mark.parametrize("native", ["0", "1"])
def test_the_best_of_each_row_are_found(vocabulary, wanted, native, monkeypatch):
    wanted = min(wanted, vocabulary)
    scores = torch.randn(9, vocabulary, generator=torch.Generator().manual_seed(vocabulary))
    scores[3, : vocabulary // 2] = float("-inf")
    monkeypatch.setenv("HEEDFUL_NATIVE", native)
    product._products.cache_clear()
    product.native_products.cache_clear()
    try:
        values, tokens = best_of_each(scores, wanted)
    finally:
        product._products.cache_clear()
        product.native_products.cache_clear()
    expected = scores.topk(wanted, dim=1)
    assert torch.equal(values, expected.values)
    possible = values.isfinite()
    assert torch.equal(tokens[possible], expected.indices[possible])
