"""Vectors of distances, beside the equation by loops and a tensor of all pairs."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import SettingError
from heedful.families.shaw.vectors import DistanceVectors
from heedful.model.attention import MultiHeadAttention
from heedful.model.layout import causal_mask
from tests.oracles.numpy_attention import NumpyAttention


def drawn(d_k=4, d_v=3, most=2):
    vectors = DistanceVectors(d_k, d_v, most).double()
    vectors.initialize(torch.Generator().manual_seed(7))
    return vectors


def distances(time):
    places = torch.arange(time)
    return (places - places[:, None])[None]


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("score", ["scaled", "unscaled"])
def test_it_is_the_attention_of_numpy(is_causal, score):
    torch.manual_seed(4)
    module = MultiHeadAttention(12, 2, d_k=4, d_v=3, bias=False, score=score).double()
    module.relation = drawn()
    query, key, value = np.split(
        module.qkv_proj.weight.detach().numpy(), np.cumsum(module.widths[:2])
    )
    tables = (module.relation.key_vectors, module.relation.value_vectors)
    oracle = NumpyAttention(
        query * (1 if score == "scaled" else 2),
        key,
        value,
        module.out_proj.weight.detach().numpy(),
        2,
        distance_vectors=tuple(table.detach().numpy() for table in tables),
    )
    x = torch.randn(1, 9, 12, dtype=torch.float64)
    found, _ = module(x, x, causal_mask(9) if is_causal else None)
    expected = oracle(x[0].numpy(), x[0].numpy(), is_causal)
    np.testing.assert_allclose(found[0].detach().numpy(), expected, atol=1e-12)


@given(st.integers(1, 9), st.integers(1, 12), st.integers(0, 99))
def test_sums_by_distance_equal_a_vector_for_each_pair(most, time, seed):
    generator = torch.Generator().manual_seed(seed)
    vectors = DistanceVectors(4, 3, most).double()
    vectors.initialize(generator)
    query = torch.randn(2, 2, time, 4, generator=generator).double()
    weights = torch.rand(2, 2, time, time, generator=generator).double()
    rows = distances(time)[0].clamp(-most, most) + most
    scores = torch.einsum("bhid,ijd->bhij", query, vectors.key_vectors[rows])
    context = torch.einsum("bhij,ijd->bhid", weights, vectors.value_vectors[rows])
    torch.testing.assert_close(vectors.scores(query, distances(time)), scores)
    torch.testing.assert_close(vectors.context(weights, distances(time)), context)


@given(st.integers(0, 100_000))
def test_a_shift_of_all_positions_leaves_attention_as_it_is(shift):
    vectors = drawn()
    places = torch.arange(shift, shift + 6)
    far = (places - places[:, None])[None]
    query = torch.randn(1, 2, 6, 4).double()
    assert vectors.scores(query, far).equal(vectors.scores(query, distances(6)))


def test_gradients_are_those_of_numbers():
    vectors = drawn()
    tables = (vectors.key_vectors, vectors.value_vectors)
    query = torch.randn(1, 2, 5, 4, dtype=torch.float64, requires_grad=True)
    weights = torch.rand(1, 2, 5, 5, dtype=torch.float64, requires_grad=True)

    def compute(query, weights, *_):
        return vectors.scores(query, distances(5)), vectors.context(weights, distances(5))

    assert torch.autograd.gradcheck(compute, (query, weights, *tables))


def test_far_keys_of_a_side_share_a_vector():
    vectors = drawn(most=2)
    scores = vectors.scores(torch.randn(1, 1, 9, 4).double(), distances(9))[0, 0]
    assert scores[0, 2:].unique().numel() == 1 and scores[8, :7].unique().numel() == 1
    assert scores[4].unique().numel() == 5
    assert vectors.flops(heads=3) == 2 * 3 * 5 * (4 + 3)


def test_sizes_that_are_none_are_refused():
    with pytest.raises(SettingError, match="`max_distance`"):
        DistanceVectors(4, 4, 0)
