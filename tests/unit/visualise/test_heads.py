"""Summaries of attention weights, against explicit sums."""

import math

import numpy as np
import pytest

from heedful.visualise.heads import (
    mean_of_heads,
    measure_heads,
    rollout,
    rollout_of_decoder,
)


def weights(seed, *shape, causal=False):
    found = np.random.default_rng(seed).random(shape) ** 3 + 1e-6
    if causal:
        found *= np.tril(np.ones(shape[-2:]))
    return found / found.sum(axis=-1, keepdims=True)


def mixed(parts):
    """Add up shares of tokens: each part is a factor and shares by token."""
    found = {}
    for factor, shares in parts:
        for token, share in shares.items():
            found[token] = found.get(token, 0.0) + factor * share
    return found


def slow_encoder(layers, position, depth):
    """Follow every path of residuals and means of heads, one by one."""
    if depth == 0:
        return {("source", position): 1.0}
    mean = layers[depth - 1].mean(axis=0)[position]
    here = slow_encoder(layers, position, depth - 1)
    there = [(0.5 * w, slow_encoder(layers, j, depth - 1)) for j, w in enumerate(mean)]
    return mixed([(0.5, here), *there])


def slow_decoder(encoder, decoder, cross, position, depth):
    if depth == 0:
        return {("target", position): 1.0}

    def below(j):
        return slow_decoder(encoder, decoder, cross, j, depth - 1)

    own = decoder[depth - 1].mean(axis=0)[position]
    between = mixed([(0.5, below(position)), *((0.5 * w, below(j)) for j, w in enumerate(own))])
    other = cross[depth - 1].mean(axis=0)[position]
    read = [(0.5 * w, slow_encoder(encoder, j, len(encoder))) for j, w in enumerate(other)]
    return mixed([(0.5, between), *read])


@pytest.mark.parametrize("seed", range(3))
def test_rollout_is_the_sum_over_all_paths(seed):
    encoder = weights(seed, 3, 2, 4, 4)
    decoder, cross = weights(seed, 2, 3, 5, 5, causal=True), weights(seed, 2, 3, 5, 4)
    found = rollout(encoder)
    for position in range(4):
        expected = slow_encoder(encoder, position, 3)
        np.testing.assert_allclose(found[position], [expected["source", j] for j in range(4)])
    written, read = rollout_of_decoder(encoder, decoder, cross)
    for position in range(5):
        expected = slow_decoder(encoder, decoder, cross, position, 2)
        np.testing.assert_allclose(written[position], [expected["target", j] for j in range(5)])
        np.testing.assert_allclose(read[position], [expected["source", j] for j in range(4)])


def test_rows_of_means_and_rollouts_sum_to_one():
    encoder = weights(1, 6, 8, 20, 20)
    decoder, cross = weights(2, 6, 8, 30, 30, causal=True), weights(3, 6, 8, 30, 20)
    np.testing.assert_allclose(mean_of_heads(cross).sum(axis=-1), 1.0)
    np.testing.assert_allclose(rollout(encoder).sum(axis=-1), 1.0)
    written, read = rollout_of_decoder(encoder, decoder, cross)
    np.testing.assert_allclose(written.sum(axis=-1) + read.sum(axis=-1), 1.0)
    assert not np.triu(written, 1).any()


def test_heads_are_measured_as_their_definitions_say():
    each = weights(5, 2, 3, 4, 6)
    each[1, 2, 0] = [0, 0, 1, 0, 0, 0]  # a weight of zero adds nothing
    found = measure_heads(each)
    assert [(one.layer, one.head) for one in found] == [(i, j) for i in (1, 2) for j in (1, 2, 3)]
    for one in found:
        rows = each[one.layer - 1, one.head - 1].tolist()
        entropy = [-sum(w * math.log2(w) for w in row if w > 0) for row in rows]
        offset = [sum(w * (j - i) for j, w in enumerate(row)) for i, row in enumerate(rows)]
        distance = [sum(w * abs(j - i) for j, w in enumerate(row)) for i, row in enumerate(rows)]
        assert one.entropy == pytest.approx(sum(entropy) / 4)
        assert one.largest == pytest.approx(sum(map(max, rows)) / 4)
        assert one.offset == pytest.approx(sum(offset) / 4)
        assert one.distance == pytest.approx(sum(distance) / 4)


def test_a_head_that_looks_back_by_one_says_so():
    previous = np.eye(8, k=-1)
    previous[0, 0] = 1.0
    (one,) = measure_heads(previous[None, None])
    assert (one.entropy, one.largest) == (0.0, 1.0)
    assert (one.distance, one.offset) == (7 / 8, -7 / 8)
