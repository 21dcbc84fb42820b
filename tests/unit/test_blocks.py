"""Positions, embeddings, feed-forward network, residual wiring, dropout, masks."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.model.dropout import Dropout, keep_mask
from heedful.model.embedding import TokenEmbedding
from heedful.model.feed_forward import FeedForward
from heedful.model.masks import causal_mask, padding_mask
from heedful.model.position import (
    LearnedPositions,
    SinusoidalPositions,
    grouped_sinusoid,
    halves_sinusoid,
    interleaved_sinusoid,
)
from heedful.model.residual import PostNorm, PreNorm


@given(st.integers(0, 100_000), st.sampled_from([2, 4, 16, 512]), st.data())
def test_interleaved_sinusoids_follow_the_paper(position, d_model, data):
    i = data.draw(st.integers(0, d_model // 2 - 1))
    row = interleaved_sinusoid(position, 1, d_model)[0]
    angle = position / 10000 ** (2 * i / d_model)
    assert float(row[2 * i]) == pytest.approx(math.sin(angle), abs=1e-6)
    assert float(row[2 * i + 1]) == pytest.approx(math.cos(angle), abs=1e-6)


@given(st.integers(0, 100_000), st.sampled_from([4, 16, 512]), st.data())
def test_halves_follow_the_authors_code(position, d_model, data):
    half = d_model // 2
    i = data.draw(st.integers(0, half - 1))
    row = halves_sinusoid(position, 1, d_model)[0]
    angle = position * math.exp(-i * math.log(10000) / (half - 1))
    assert float(row[i]) == pytest.approx(math.sin(angle), abs=1e-6)
    assert float(row[half + i]) == pytest.approx(math.cos(angle), abs=1e-6)


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_sinusoids_have_no_longest_position(layout):
    positions = SinusoidalPositions(8, layout)
    short = positions(0, 5).clone()
    assert positions(0, 20_000).shape == (20_000, 8)
    torch.testing.assert_close(positions(0, 5), short)
    torch.testing.assert_close(positions(3, 2), short[3:5])
    assert "table" not in positions.state_dict()


def test_the_first_position_can_be_moved():
    torch.testing.assert_close(
        SinusoidalPositions(8, position_offset=1)(0, 3), SinusoidalPositions(8)(1, 3)
    )


def test_learned_positions_share_the_last_row_beyond_the_table():
    positions = LearnedPositions(4, rows=3)
    torch.nn.init.normal_(positions.weight)
    found = positions(1, 4)
    torch.testing.assert_close(found, positions.weight[[1, 2, 2, 2]])


def test_an_odd_width_has_no_sinusoids():
    with pytest.raises(ValueError, match="even d_model"):
        SinusoidalPositions(7)


def test_embeddings_are_scaled_by_the_root_of_the_width():
    embedding = TokenEmbedding(10, 16)
    torch.nn.init.normal_(embedding.weight)
    ids = torch.tensor([[3, 4]])
    torch.testing.assert_close(embedding(ids)[0], 4.0 * embedding.weight[[3, 4]])
    plain = TokenEmbedding(10, 16, scale=False)
    plain.weight = embedding.weight
    torch.testing.assert_close(plain(ids)[0], embedding.weight[[3, 4]])


def test_the_zero_token_is_a_zero_vector_without_touching_the_table():
    embedding = TokenEmbedding(10, 16, zero_token=0)
    torch.nn.init.ones_(embedding.weight)
    found = embedding(torch.tensor([[0, 1]]))
    assert found[0, 0].abs().sum() == 0
    assert found[0, 1].abs().sum() > 0
    assert embedding.weight[0].abs().sum() > 0


def test_a_frequent_tokens_gradient_is_added_up_in_fp32():
    embedding = TokenEmbedding(4, 2, scale=False).to(torch.bfloat16)
    ids = torch.full((1, 1000), 3)
    embedding(ids).sum().backward()
    assert embedding.weight.grad[3].tolist() == [1000.0, 1000.0]
    assert embedding.weight.grad[:3].abs().sum() == 0


def test_the_feed_forward_network_is_equation_2():
    network = FeedForward(4, 8)
    x = torch.randn(3, 4)
    first, second = network.widen, network.narrow
    inner = (x @ first.weight.T + first.bias).clamp(min=0)
    torch.testing.assert_close(network(x), inner @ second.weight.T + second.bias)


@pytest.mark.parametrize("name", ["gelu", "silu"])
def test_other_activations_differ_from_relu(name):
    torch.manual_seed(1)
    network, other = FeedForward(4, 8), FeedForward(4, 8, name)
    other.load_state_dict(network.state_dict())
    x = torch.randn(3, 4)
    assert not torch.allclose(network(x), other(x))


def test_post_norm_normalises_the_sum_and_pre_norm_does_not():
    x = torch.randn(2, 3, 8)
    torch.testing.assert_close(
        PostNorm(8, 0.0)(x, lambda y: 2 * y), torch.nn.functional.layer_norm(3 * x, (8,), eps=1e-6)
    )
    torch.testing.assert_close(
        PreNorm(8, 0.0)(x, lambda y: 2 * y),
        x + 2 * torch.nn.functional.layer_norm(x, (8,), eps=1e-6),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_drops_the_right_share_and_keeps_the_mean(dtype):
    torch.manual_seed(1)
    dropout = Dropout(0.3)
    x = torch.ones(400, 500, dtype=dtype)
    out = dropout(x)
    assert float((out == 0).float().mean()) == pytest.approx(0.3, abs=0.005)
    assert float(out.float().mean()) == pytest.approx(1.0, abs=0.01)


def test_dropout_gradients_pass_where_the_values_passed():
    torch.manual_seed(1)
    x = torch.randn(50, 50, requires_grad=True)
    out = Dropout(0.5)(x)
    out.sum().backward()
    torch.testing.assert_close(out.detach(), x.detach() * x.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_adding_what_dropout_leaves_equals_adding_it_afterwards(dtype):
    x, y = (torch.randn(50, 50).to(dtype).requires_grad_() for _ in range(2))
    upstream = torch.randn(50, 50).to(dtype)
    results = []
    for sum_of in (lambda dropout: x + dropout(y), lambda dropout: dropout.add(x, y)):
        torch.manual_seed(1)
        out = sum_of(Dropout(0.3))
        results.append((out.detach(), *torch.autograd.grad(out, (x, y), upstream)))
    close = {"atol": 0.03, "rtol": 0.01} if dtype == torch.bfloat16 else {}
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, **close)
    assert torch.equal(Dropout(0.3).eval().add(x, y), x + y)


def test_dropout_repeats_under_the_same_seed_and_differs_otherwise():
    shape = torch.Size([100])
    torch.manual_seed(7)
    first, second = keep_mask(shape, 0.5), keep_mask(shape, 0.5)
    torch.manual_seed(7)
    assert torch.equal(keep_mask(shape, 0.5), first)
    assert not torch.equal(first, second)


@given(st.lists(st.integers(0, 5), min_size=0, max_size=3), st.floats(0.0, 0.9))
def test_dropout_masks_have_any_shape(sizes, probability):
    assert keep_mask(torch.Size(sizes), probability).shape == torch.Size(sizes)


def test_dropout_does_nothing_when_not_training():
    x = torch.randn(3, 3)
    assert Dropout(0.5).eval()(x) is x


def test_masks_are_true_where_a_look_is_allowed():
    assert causal_mask(3)[0, 0].tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    assert padding_mask(torch.tensor([[4, 5, 0]]), 0)[0, 0].tolist() == [[True, True, False]]


def test_grouped_sinusoids_are_the_papers_in_another_order():
    paper, grouped = (layout(3, 5, 8) for layout in (interleaved_sinusoid, grouped_sinusoid))
    assert grouped.equal(paper[:, [0, 2, 4, 6, 1, 3, 5, 7]])
