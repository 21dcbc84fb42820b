"""Layers that are built in Python get the refusals that settings get."""

import jaxtyping
import pytest

from heedful.errors import HeedfulError
from heedful.model.layer_config import LayerConfig

SIZES = {"d_model": 8, "d_ff": 8, "heads": 2}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mixer": "fast"}, "`mixer` of LayerConfig must be a function or None"),
        ({"score": "cosine"}, "`score` must be scaled or"),
        ({"norm": "sandwich"}, "`norm` of LayerConfig must be"),
        ({"norm_kind": "rms"}, "`norm_kind` of LayerConfig must be"),
        ({"window": 0}, "`window` must be at least 1"),
        ({"window": "3"}, "`window` of LayerConfig must be a whole number"),
        ({"window": 3, "causal_mask": False}, "`causal_mask` must be true"),
        ({"residuals": "no"}, "`residuals` of LayerConfig must be True or False"),
        ({"heads": 0}, "`heads` must be at least 1"),
    ],
)
def test_wrong_choices_are_named(changes, words):
    jaxtyping.config.update("jaxtyping_disable", True)  # a user has no such checks
    with pytest.raises(HeedfulError) as caught:
        LayerConfig(**{**SIZES, **changes})
    assert words in str(caught.value)
