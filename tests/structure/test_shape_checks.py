"""The tests check the shapes in heedful's signatures, at least in each test's first calls."""

from collections.abc import Iterator
from importlib import import_module
from inspect import isfunction
from pkgutil import walk_packages
from typing import Any, get_args

import jaxtyping
import pytest
import torch
from tests.support.shape_checks import CHECKED_CALLS, modules_with_shapes

import heedful
from heedful.search.scoring import token_log_probabilities


def compute(width):
    targets = torch.zeros(2, dtype=torch.int64)
    return token_log_probabilities(torch.zeros(2, 3), targets, torch.zeros(4, width))


def test_a_wrong_shape_is_refused_by_the_signature():
    assert compute(3).shape == (2,)
    with pytest.raises(jaxtyping.TypeCheckError, match="weight"):
        compute(5)


def test_later_calls_of_a_long_test_are_not_checked():
    for _ in range(CHECKED_CALLS):
        compute(3)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        compute(5)


def test_the_next_test_is_checked_again():
    with pytest.raises(jaxtyping.TypeCheckError, match="weight"):
        compute(5)


def functions_with_shapes(module: Any) -> Iterator[str]:
    """List the functions and methods of a module whose signatures contain shapes."""
    for name, value in vars(module).items():
        members = vars(value) if isinstance(value, type) else {name: value}
        for member in members.values():
            own = isfunction(member) and member.__module__ == module.__name__
            if own and any(map(has_shape, member.__annotations__.values())):
                yield f"{module.__name__}: {member.__qualname__}"


def has_shape(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, jaxtyping.AbstractArray):
        return True
    return any(map(has_shape, get_args(annotation)))


def test_every_signature_with_shapes_is_in_a_checked_module():
    checked = {*modules_with_shapes()}
    names = {found.name for found in walk_packages(heedful.__path__, "heedful.")}
    others = names - checked - {"heedful.__main__", "heedful.kernels.triton_kernels"}
    assert [f for name in sorted(others) for f in functions_with_shapes(import_module(name))] == []
    layers = [*functions_with_shapes(import_module("heedful.model.layers"))]
    assert "heedful.model.layers: DecoderLayer.forward" in layers
