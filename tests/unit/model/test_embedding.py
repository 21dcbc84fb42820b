import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import SettingError
from heedful.model.embedding import (
    LearnedPositions,
    NoPositions,
    SinusoidalPositions,
    TokenEmbedding,
    grouped_sinusoid,
    halves_sinusoid,
    interleaved_sinusoid,
)


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
    with pytest.raises(SettingError, match="must be even for sines"):
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


def test_grouped_sinusoids_are_the_papers_in_another_order():
    paper, grouped = (layout(3, 5, 8) for layout in (interleaved_sinusoid, grouped_sinusoid))
    assert grouped.equal(paper[:, [0, 2, 4, 6, 1, 3, 5, 7]])


def test_no_positions_are_zeros():
    positions = NoPositions(4)
    assert torch.equal(positions(7, 3), torch.zeros(3, 4))
    assert not positions.state_dict()
