"""Padding that is kept beside the tokens, for sizes that oneDNN knows, changes nothing."""

import pytest
import torch

from heedful.config.load import load_config
from heedful.families.build import build_model
from heedful.kernels import attention
from heedful.model.initialize import initialize
from tests.support.families import texts_are_here

KINDS = [
    *([], ["model.norm_kind=batch"], ["model.norm_kind=rms"], ["model.attention.window=9"]),
    *(["model.experts.count=4"], ["model.experts.count=4", "model.experts.gating=balanced"]),
    *(["model.positions=rotary"], ["model.positions=shaw"], ["model.positions=relative-buckets"]),
    *(["model.attention.score=additive"], ["model.attention.encoder=fastformer"]),
    *(["model.encoder=bytenet"], ["model.attention.kv_heads=1"], ["model.gated=true"]),
]
SMALL = ("model.d_model=16", "model.d_ff=32", "model.heads=2", "model.dropout=0.0")
SMALL += ("model.encoder_layers=2", "model.decoder_layers=2")


def batch():
    """32 pairs of rows of at most 40 positions; a fifth of the positions is padding."""
    generator = torch.Generator().manual_seed(0)
    source, target = torch.randint(4, 20, (2, 32, 40), generator=generator)
    lengths = torch.randint(24, 41, (2, 32, 1), generator=generator)
    lengths[:, 0] = 40
    places = torch.arange(40)
    return source * (places < lengths[0]), target * (places < lengths[1])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if texts_are_here(kind)], ids=" ".join)
def test_states_and_averages_are_those_of_the_tokens_alone(kind, monkeypatch):
    source, target = batch()
    config = load_config("paper-base", [*SMALL, *kind])
    results = []
    for step in (attention._STEP, 1):  # by 1, no padding is kept
        monkeypatch.setattr(attention, "_STEP", step)
        model = build_model(config.model, 20, 20, max_length=50)
        initialize(model, 1)
        torch.manual_seed(2)
        states = model.train().states(source, target)[target != 0]
        results.append([states, *model.buffers()])
    for kept, removed in zip(*results, strict=True):
        torch.testing.assert_close(kept, removed, atol=1e-5, rtol=1e-5)
