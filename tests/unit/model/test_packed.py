"""The Transformer without padding gives the states of its padded rows."""

import pytest
import torch

from heedful.kernels.varlen import PackedRows
from heedful.model.packed import PackedSide, packed_states, why_not_packed
from tests.support.families import are_here
from tests.support.models import FAMILIES, batch, small

WIDE = {"d_model": 16, "heads": 2}
PACKED = (
    {},
    {"norm": "pre"},
    {"positions": "learned"},
    {"positions": "halves", "embedding_norm": True},
    {"positions": "none"},
    {"causal_mask": False},
    {"tie_embeddings": "none"},
    {"attention": {"window": 3}},
    {"attention": {"score": "unscaled"}},
    {"positions": "rotary"},
    {"attention": {"qk_norm": "rms"}},
    {"attention": {"kv_heads": 1}},
    {"encoder_sharing": "1,1", "decoder_sharing": "1,1"},
)


def packed(ids, padding=0):
    """Lay rows out one after the other; the first token of a row is always real."""
    real = ids != padding
    real[:, 0] = True
    counts = real.sum(dim=1)
    starts = torch.tensor([0, *counts.cumsum(0)], dtype=torch.int32)
    places = torch.cat([torch.arange(count) for count in counts.tolist()])
    return PackedSide(ids[real].unsqueeze(0), places, PackedRows(starts, ids.size(1))), real


@pytest.mark.parametrize(
    "changes",
    [settings for settings in PACKED if are_here(settings)],
    ids=str,
)
def test_states_are_those_of_padded_rows(changes):
    model = small(**WIDE, **changes)
    assert why_not_packed(model) == ""
    source, target = batch()
    target[1, 3:] = 0
    (source_side, _), (target_side, real) = packed(source), packed(target)
    with torch.no_grad():
        expected = model.states(source, target)[real]
        found = packed_states(model, source_side, target_side)[0]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"attention": {"score": "additive"}}, "not a dot product"),
        ({"d_k": 4, "d_v": 8}, "4 and 8"),
        ({"d_k": 6, "d_v": 6}, "6 and 6"),
    ],
    ids=str,
)
def test_what_needs_padded_rows_is_named(changes, reason):
    assert reason in why_not_packed(small(**WIDE, **changes))


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - {"transformer"}))
def test_other_families_keep_padded_rows(family):
    assert why_not_packed(small(**FAMILIES[family]))


def test_gradients_of_learned_positions_are_summed_in_fp32():
    """Sums of hundreds of bf16 numbers would stand still where a term is below their last bit."""
    gradients = []
    for dtype in (torch.float32, torch.bfloat16):
        model = small(**WIDE, positions="learned", encoder_layers=1, decoder_layers=1).to(dtype)
        ids = torch.full((1, 1200), 5)
        rows = PackedRows(torch.arange(0, 1201, 2, dtype=torch.int32), 2)
        side = PackedSide(ids, torch.arange(2).repeat(600), rows)
        states = packed_states(model, side, side)
        states.backward(torch.linspace(0, 1, states.size(-1)).to(dtype).expand_as(states))
        gradients.append(model.target_positions.weight.grad[:2].float())
    exact, rounded = gradients
    assert (rounded - exact).norm() < 0.05 * exact.norm()


def test_a_penalty_needs_padded_rows():
    model = small(**WIDE)
    model.encoder.norm.penalty = None  # as a norm of a plugin may have one
    assert "adds a term to the loss" in why_not_packed(model)


@pytest.mark.parametrize("name", ["encode", "states", "penalty"])
def test_a_model_with_a_method_of_its_own_needs_padded_rows(name):
    model = small(**WIDE)
    model.__class__ = type("Own", (type(model),), {name: lambda *_: None})
    assert why_not_packed(model).startswith("Own ")
