"""Padding that is kept beside the tokens, for sizes that oneDNN knows, changes nothing."""

import pytest
import torch

from heedful.config.load import load_config
from heedful.families.build import build_model
from heedful.kernels import attention
from heedful.kernels.attention import Packing
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


def batch(rows):
    """Pairs of rows of at most 40 positions; a fifth of the positions is padding."""
    generator = torch.Generator().manual_seed(0)
    source, target = torch.randint(4, 20, (2, rows, 40), generator=generator)
    lengths = torch.randint(24, 41, (2, rows, 1), generator=generator)
    lengths[:, 0] = 40
    places = torch.arange(40)
    return source * (places < lengths[0]), target * (places < lengths[1])


@pytest.mark.parametrize(("rows", "step"), [(32, 64), (20, 16), (2, 16), (1, 1)])
def test_tokens_are_kept_with_padding_up_to_a_multiple(rows, step):
    (source, _), kept = batch(rows), []
    for length in range(1, 30):
        real = (source != 0) & (torch.arange(40) < length + 8 * (torch.arange(rows) % 2)[:, None])
        if (packing := Packing.of(real)) is None:  # no smaller size is a multiple
            assert real.sum() + step > 0.97 * real.numel()
            continue
        assert packing.places.diff().gt(0).all() and packing.places.max() < real.numel()
        assert real.reshape(-1)[packing.places].sum() == real.sum()
        kept.append(len(packing.places) - int(real.sum()))
        assert len(packing.places) % step == 0 and kept[-1] < step
    assert max(kept) >= step / 2 or step == 1


@pytest.mark.parametrize("rows", [32, 8])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if texts_are_here(kind)], ids=" ".join)
def test_states_and_averages_are_those_of_the_tokens_alone(kind, rows, monkeypatch):
    source, target = batch(rows)
    config = load_config("paper-base", [*SMALL, *kind])
    results = []
    for steps in (attention._STEPS, ()):  # without steps, no padding is kept
        monkeypatch.setattr(attention, "_STEPS", steps)
        model = build_model(config.model, 20, 20, max_length=50)
        initialize(model, 1)
        torch.manual_seed(2)
        states = model.train().states(source, target)[target != 0]
        results.append([states, *model.buffers()])
    for kept, removed in zip(*results, strict=True):
        torch.testing.assert_close(kept, removed, atol=1e-5, rtol=1e-5)
