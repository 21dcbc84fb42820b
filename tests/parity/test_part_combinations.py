"""
Every combination of the parts of a Transformer: allowed and right, or refused early.

All combinations of the parts inside attention are tried, each with one choice of the other parts;
with `make soak` each is tried with all of them.
"""

import copy
from itertools import combinations, product

import pytest
import torch
from tests.support.models import batch, small
from tests.unit.model.test_packed import packed

from heedful.config.model import ModelConfig
from heedful.errors import SettingError
from heedful.families.registry import values_of
from heedful.machine.processor import int8_levels
from heedful.model.graphed import GraphedModel, can_record
from heedful.model.inference import is_compiled, optimize_for_inference
from heedful.model.known_layers import why_not_compiled
from heedful.model.packed import packed_states, why_not_packed

OWN_POSITIONS = ("interleaved", "halves", "grouped", "learned", "none")
DISTANCES = tuple(name for name in values_of("model.positions") if name not in OWN_POSITIONS)
# The values of parts inside attention.
INNER = {
    "positions": ("interleaved", *DISTANCES),
    "qk_norm": values_of("model.attention.qk_norm"),
    "kv_heads": (None, 1),
    "score": ("scaled", "unscaled", "additive"),
    "window": (None, 3),
}
# The values of all other parts.
OUTER = {
    "norm_kind": tuple(name for name in values_of("model.norm_kind") if name in ("layer", "rms")),
    "gated": (False, True),
    "sharing": ("", "1,1"),
    "norm": ("post", "pre"),
    "dropout": (0.0, 0.2),
}


def each(values):
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


OUTERS = each(OUTER)


# squares by a prime, so that the choices are never in step with the parts inside
CASES = [{**inner, **OUTERS[n * n % 31 % len(OUTERS)]} for n, inner in enumerate(each(INNER))]
# dropout, the last of the values, changes no forward pass here, so every other model has it
REST = [
    {**inner, **outer}
    for number, inner in enumerate(each(INNER))
    for place, outer in enumerate(OUTERS)
    if (number // 2 + place // 2 + place) % 2 == 0
]


def settings_of(case):
    """The settings of a case, as in a configuration."""
    attention = {name: case[name] for name in ("qk_norm", "kv_heads", "score", "window")}
    return {
        "attention": {**attention, "dropout": case["dropout"]},
        **{name: case[name] for name in ("positions", "norm_kind", "gated", "norm")},
        **{"encoder_sharing": case["sharing"], "decoder_sharing": case["sharing"]},
    }


def why_refused(case):
    """The settings that a message about this case must name; empty if it is allowed."""
    is_product = case["score"] != "additive"
    if case["positions"] in DISTANCES and case["window"]:
        return ("model.attention.window", "model.positions")
    if case["positions"] in ("rotary", "shaw") and not is_product:
        return ("model.attention.score", "model.positions")
    if case["kv_heads"] and not is_product:
        return ("model.attention.score", "model.attention.kv_heads")
    if case["qk_norm"] == "l2" and case["score"] != "scaled":
        return ("model.attention.score", "model.attention.qk_norm")
    return ()


def drawn(settings):
    """A model whose norms and tables have numbers of their own, as after a training."""
    model = small(**settings)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1 or "score_bias" in name:
                weight += 0.3 * torch.randn(weight.shape, generator=generator)
    return model


def steps(model, source, target):
    """The states of all steps of a search that writes the target: (sentences, target, d_model)."""
    found, state = [], model.start(model.encode(source))
    for position in range(target.size(1)):
        states, state = model.step(state, target[:, position])
        found.append(states.clone())
    return torch.stack(found, dim=1)


def check(case):
    """Compare the ways to compute a case."""
    # a scale of ten times the cosine makes a softmax sharp, which enlarges what is rounded
    compare(drawn(settings_of(case)), int8=0.2 if case["qk_norm"] == "l2" else 0.12)


def compare(model, int8):
    """Compare the forward pass with the steps, by every kind of layer that serves the model."""
    source, target = batch()
    target[:, 0] = model.start_token
    with torch.inference_mode():
        whole = model.states(source, target)
        # norms leave hardly any number above 4; without them, states may be larger
        near = {"atol": 2e-5 * max(1.0, float(whole.abs().max()) / 4), "rtol": 1e-4}
        torch.testing.assert_close(steps(model, source, target), whole, **near)
        for kind, bound in (("packed", 1e-4), ("int8", int8 * 127 / int8_levels())):
            fast = optimize_for_inference(copy.deepcopy(model), kind)
            # compiled layers need a processor with compiled functions
            assert not (is_compiled(fast) and why_not_compiled(model))
            for states in (fast.states(source, target), steps(fast, source, target)):
                assert (states - whole).norm() < bound * whole.norm()
        if can_record(model):
            found = steps(GraphedModel(model), source, target)
            torch.testing.assert_close(found, whole, **near)
        if not why_not_packed(model):
            (source_side, _), (target_side, real) = packed(source), packed(target)
            found = packed_states(model, source_side, target_side)[0]
            torch.testing.assert_close(found, whole[real], **near)


def check_gradients(model):
    """Check that gradients reach all weights, and that they are finite."""
    model.train().states(*batch()).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def try_all(cases):
    allowed = 0
    for case in cases:
        if reasons := why_refused(case):
            with pytest.raises(SettingError) as caught:
                ModelConfig(encoder_layers=2, decoder_layers=2, **settings_of(case))
            assert all(f"`{name}`" in str(caught.value) for name in reasons), case
        else:
            check(case)
            allowed += 1
    return allowed


BOTH = [(position, norm) for position in INNER["positions"] for norm in INNER["qk_norm"]]


def of(cases, position, norm):
    return [case for case in cases if (case["positions"], case["qk_norm"]) == (position, norm)]


@pytest.mark.parametrize(("position", "norm"), BOTH)
def test_steps_equal_the_forward_pass(position, norm):
    assert try_all(of(CASES, position, norm))


@pytest.mark.soak
@pytest.mark.parametrize(("position", "norm"), BOTH)
def test_steps_equal_the_forward_pass_with_all_other_parts(position, norm):
    assert try_all(of(REST, position, norm))


def test_every_pair_of_parts_that_is_allowed_is_tried():
    def pairs(cases):
        return {
            ((one, case[one]), (other, case[other]))
            for case in cases
            if not why_refused(case)
            for one, other in combinations(case, 2)
        }

    assert pairs(CASES) == pairs(REST)


@pytest.mark.parametrize("case", [case for case in CASES if not why_refused(case)][::5])
def test_gradients_reach_all_weights(case):
    check_gradients(drawn(settings_of({**case, "dropout": 0.3})))
