"""Distributions of first weights."""

import math

import torch

from heedful.model.initial_weights import glorot, table


def draw(distribution):
    weight = torch.empty(300, 100)
    distribution(weight, torch.Generator().manual_seed(1))
    return weight


def test_glorot_is_uniform_within_its_bound():
    weight, bound = draw(glorot), math.sqrt(6 / 400)
    assert 0.99 * bound < weight.abs().max() <= bound
    assert abs(weight.std() - bound / math.sqrt(3)) < 0.01 * bound


def test_a_row_of_a_table_has_length_one_on_average():
    weight = draw(table)
    assert abs(weight.norm(dim=1).mean() - 1) < 0.02
