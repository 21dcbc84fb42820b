"""Recurrent parts that are built in Python refuse what their settings refuse."""

import jaxtyping
import pytest

from heedful.errors import HeedfulError
from heedful.families.recurrent.decoder import RecurrentDecoder
from heedful.families.recurrent.encoder import RecurrentEncoder
from heedful.families.recurrent.wiring import RecurrentWiring

SIZES = {"d_model": 8, "hidden_size": 8, "layers": 1}


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: RecurrentWiring(**{**SIZES, "d_model": "8"}), "`d_model` of RecurrentWiring"),
        (lambda: RecurrentWiring(**{**SIZES, "layers": 0}), "`layers` must be at least 1"),
        (lambda: RecurrentWiring(**SIZES, cell="elman"), "`cell` of RecurrentWiring must be"),
        (lambda: RecurrentWiring(**SIZES, start="foo"), "`start` of RecurrentWiring must be"),
        (lambda: RecurrentWiring(**SIZES, readout="maxout"), "`readout_size` must be at least 1"),
        (lambda: RecurrentWiring(**SIZES, score="additive"), "`attention_size` must be at least"),
        (lambda: RecurrentEncoder(RecurrentWiring(**SIZES, layer_dropout=2.0)), "`dropout` must"),
        (lambda: RecurrentEncoder(8), "`wiring` of RecurrentEncoder must be a RecurrentWiring"),
        (lambda: RecurrentDecoder(None), "`wiring` of RecurrentDecoder must be a RecurrentWiring"),
    ],
)
def test_wrong_choices_are_named(build, words):
    jaxtyping.config.update("jaxtyping_disable", True)  # a user has no such checks
    with pytest.raises(HeedfulError) as caught:
        build()
    assert words in str(caught.value)
