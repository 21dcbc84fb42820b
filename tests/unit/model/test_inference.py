"""Prepacked weights give the same model."""

import copy
from functools import partial
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.analysis.info import describe_installation
from heedful.kernels.linear import LINEAR_FACTORIES, Int8Linear, PrepackedLinear, can_prepack
from heedful.kernels.native.compile import processor_flags
from heedful.kernels.native.product import can_multiply_bf16
from heedful.machine.processor import int8_levels
from heedful.model import inference
from heedful.model.inference import (
    CompiledDecoder,
    CompiledEncoder,
    can_round_to_bf16,
    compiles_bf16,
    is_compiled,
    optimize_for_inference,
)
from heedful.model.initialize import initialize
from heedful.search.beam import beam_search
from heedful.search.settings import SearchOptions
from tests.oracles.rounded_product import RoundedProduct
from tests.support.models import SETTINGS, batch, small

CPU = torch.device("cpu")
PACKED = [
    torch.float32,
    *([torch.bfloat16] if can_prepack(CPU, torch.bfloat16) else []),
]

SHARED = {"encoder_sharing": "1,1", "decoder_sharing": "1,1", "norm": "pre"}


KINDS = ["packed", "bf16", "int8"]


def outputs(model):
    """All interfaces of a model: whole targets, steps, logits and weights."""
    source, target = batch()
    target[:, 0] = model.start_token
    with torch.inference_mode():
        states = model.states(source, target)
        logs = model.log_probabilities(states.flatten(0, 1))
        found = [states, model.project(states), logs.exp()]
        state = model.start(model.encode(source))
        for position in range(target.size(1)):
            states, state = model.step(state, target[:, position])
            found.append(states)
        weights = model.attention(source, target)
    return [*found, *weights.encoder, *weights.decoder, *weights.cross]


@pytest.fixture(scope="module", params=SETTINGS)
def known(request):
    """Settings, their model in fp32 and its outputs; tests optimize copies."""
    plain = small(**request.param)
    return request.param, plain, outputs(plain)


@pytest.mark.parametrize("dtype", PACKED)
def test_a_packed_model_computes_the_same(known, dtype):
    _, plain, expected = known
    bound, choices = 1e-5, (True, False)
    if dtype == torch.bfloat16:  # compiled functions take weights in fp32 alone: one choice
        plain = copy.deepcopy(plain).to(dtype)
        bound, choices, expected = 0.05, (True,), outputs(plain)
    for native in choices:
        packed = optimize_for_inference(copy.deepcopy(plain), "packed", native)
        for one, other in zip(outputs(packed), expected, strict=True):
            torch.testing.assert_close(one, other, atol=bound, rtol=bound)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("size", [3e38, 1e22])
def test_what_overflows_stays_no_number_to_the_end(size, norm):
    plain = small(norm=norm, decoder_layers=4)
    with torch.no_grad():
        weight = plain.encoder.layers[0].self_attention.out_proj.weight
        weight.copy_(torch.full_like(weight, size).copysign(weight))
    assert not outputs(plain)[2].isfinite().any()
    for kind, native in product(("packed", "int8"), (True, False)):
        packed = optimize_for_inference(copy.deepcopy(plain), kind, native)
        assert not outputs(packed)[2].isfinite().any(), (kind, native)


def test_eight_bits_compute_nearly_the_same(known):
    changes, plain, expected = known
    # scores of `l2` are ten times a cosine at first, so attention is sharp and enlarges rounding
    is_sharp = changes.get("attention", {}).get("qk_norm") == "l2"
    bound = 0.08 if is_sharp else 0.04
    for native in (True, False):
        rounded = optimize_for_inference(copy.deepcopy(plain), "int8", native=native)
        for one, other in zip(outputs(rounded), expected, strict=True):
            assert (one - other).norm() < bound * 127 / int8_levels() * other.norm()


def test_compiled_bf16_computes_nearly_the_same(known):
    changes, plain, expected = known
    possible = can_round_to_bf16(plain)
    elsewhere = not can_multiply_bf16() or "amx_bf16" in processor_flags()
    assert possible or elsewhere or not is_compiled(packed(plain, "packed"))
    if possible:
        # both factors of a gated network have errors, which makes up to 1.1% here
        rounded, bound = packed(plain, "bf16"), 0.02 if changes.get("gated") else 0.01
        assert is_compiled(rounded)
        for one, other in zip(outputs(rounded), expected, strict=True):
            assert (one - other).norm() < bound * other.norm()


def packed(plain, kind):
    return optimize_for_inference(copy.deepcopy(plain), kind)


SENSITIVE = [
    settings
    for settings in SETTINGS
    if "gated" in settings or settings.get("attention", {}).get("qk_norm") == "l2"
]


def mean_error(found, expected):
    pairs = zip(found, expected, strict=True)
    return sum(float((one - other).norm() / other.norm()) for one, other in pairs) / len(expected)


@pytest.mark.parametrize("changes", SENSITIVE)
@pytest.mark.parametrize(("kind", "factor"), [("int8", 1.15), ("bf16", 1.25)])
def test_only_the_rounding_of_inputs_and_weights_makes_errors(kind, factor, changes, monkeypatch):
    """Exactly rounded products summed in fp64 have errors as large; some keys are rounded, too."""
    if kind == "bf16" and not can_round_to_bf16(small(**changes)):
        return
    found, twin = [], 0.0
    for seed in range(1, 5):
        plain = small(**changes)
        initialize(plain, seed)
        expected = outputs(plain)
        found += [
            [
                mean_error(
                    outputs(optimize_for_inference(copy.deepcopy(plain), kind, native)), expected
                )
                for native in ((True, False) if kind == "int8" else (True,))
            ]
        ]
        with monkeypatch.context() as patch:
            patch.setitem(LINEAR_FACTORIES, "packed", partial(RoundedProduct, kind=kind))
            rounded = optimize_for_inference(copy.deepcopy(plain), "packed", native=False)
        twin += mean_error(outputs(rounded), expected)
    assert all(sum(errors) <= factor * twin for errors in zip(*found, strict=True))


@given(st.integers(1, 9), st.integers(0, 100))
def test_a_row_of_eight_bits_does_not_depend_on_its_neighbors(rows, seed):
    generator = torch.Generator().manual_seed(seed)
    linear = Int8Linear(torch.randn(24, 32, generator=generator), None)
    x = torch.randn(rows, 32, generator=generator) * torch.logspace(-3, 3, rows).unsqueeze(1)
    together = linear(x)
    alone = torch.cat([linear(row.unsqueeze(0)) for row in x])
    torch.testing.assert_close(together, alone, rtol=1e-6, atol=0)


# Without VNNI products of more than 63 levels overflow; `int8_levels` knows.
@pytest.mark.parametrize("levels", sorted({63, int8_levels()}))
def test_eight_bits_are_as_near_as_their_steps_allow(levels):
    torch.manual_seed(1)
    x, weight, bias = torch.randn(50, 64), torch.randn(40, 64), torch.randn(40)
    found = Int8Linear(weight, bias, levels=levels)(x)
    # each input and each weight is off by half a step at most
    step = x.abs().amax(1, keepdim=True) / levels * weight.abs().sum(1) / 2
    step = step + (weight.abs().amax(1) / levels / 2) * x.abs().sum(1, keepdim=True) * 1.01
    assert ((found - (x @ weight.t() + bias)).abs() <= step + 1e-4).all()


def test_a_row_of_zeros_gives_the_bias():
    bias = torch.randn(8)
    found = Int8Linear(torch.randn(8, 16), bias)(torch.zeros(2, 16))
    torch.testing.assert_close(found, bias.expand(2, -1))


@pytest.mark.parametrize("rows", [1, 4, 33, 200])
def test_packed_products_are_products(rows):
    torch.manual_seed(0)
    x, weight, bias = torch.randn(3, rows, 48), torch.randn(56, 48), torch.randn(56)
    found = PrepackedLinear(weight, bias)(x)
    torch.testing.assert_close(found, torch.nn.functional.linear(x, weight, bias))


# In 8 bits keys and values are bf16 in one and fp32 in the other, and a rounded number may fall
# either way, by a step that is twice as large without VNNI.
@pytest.mark.parametrize(
    ("kind", "bound"), [("packed", 1e-5), ("int8", 0.015 * 127 / int8_levels())]
)
@pytest.mark.parametrize("changes", [{}, {"norm": "pre"}, {"encoder_norm": "pre"}, SHARED])
@pytest.mark.usefixtures("compiled")
def test_compiled_functions_compute_what_the_plain_modules_do(changes, kind, bound):
    # heads of 32 numbers, which fill vectors
    plain, quick = (
        optimize_for_inference(small(**changes, d_model=64, d_ff=128), kind, native=native)
        for native in (False, True)
    )
    assert isinstance(quick.decoder, CompiledDecoder)
    assert isinstance(quick.encoder, CompiledEncoder)
    for one, other in zip(outputs(quick), outputs(plain), strict=True):
        assert (one - other).norm() < bound * other.norm()


T5 = {
    "positions": "relative-buckets",
    "norm_kind": "rms",
    "norm": "pre",
    "attention": {"score": "unscaled"},
    "relative_buckets": {"count": 6, "max_distance": 5},
    **{"projection_bias": False, "feed_forward_bias": False, "scale_embeddings": False},
    **{"scale_output": True, "decoder_start": "pad"},
}
CLASSES = [
    {"activation": "silu"},
    {"activation": "gelu", "norm": "pre", "embedding_norm": True},
    {"activation": "gelu_tanh", "encoder_d_ff": 72},
    {"activation": "gelu", "gated": True, "d_ff": 52},
    {"norm_kind": "rms"},
    T5,
    T5 | {"gated": True, "activation": "gelu_tanh", "d_k": 12, "d_v": 20, "d_ff": 88},
    T5 | {"norm": "post", "scale_output": False, "activation": "silu"},
]


def with_every_weight(model):
    """Give gains, biases and buckets numbers of their own, as a training does."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1 or "score_bias" in name:
                parameter += torch.randn(parameter.shape, generator=generator) * 0.3
    return model


@pytest.mark.parametrize("changes", CLASSES)
@pytest.mark.usefixtures("compiled")
def test_compiled_functions_know_the_layers_of_other_classes(changes):
    plain = with_every_weight(small(**{"d_model": 64, "d_ff": 128, **changes}))
    quick, slow = (optimize_for_inference(copy.deepcopy(plain), "packed", n) for n in (True, False))
    assert is_compiled(quick) and not is_compiled(slow)
    expected = outputs(plain)
    for one, other in zip(outputs(quick), expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
    quick, slow = (optimize_for_inference(copy.deepcopy(plain), "int8", n) for n in (True, False))
    assert is_compiled(quick) and not is_compiled(slow)
    errors = [
        ((one - exact).norm() / exact.norm(), (other - exact).norm() / exact.norm())
        for one, other, exact in zip(outputs(quick), outputs(slow), expected, strict=True)
    ]
    # Each processor rounds in its own way, so the errors of a single output may differ.
    assert all(one < 2 * other + 0.005 for one, other in errors)
    quick_error, slow_error = map(sum, zip(*errors, strict=True))
    assert quick_error < 1.2 * slow_error


@pytest.mark.parametrize(
    "changes",
    [{"activation": "gelu"}, T5, T5 | {"gated": True, "activation": "silu"}],
)
@pytest.mark.usefixtures("compiled")
def test_a_beam_writes_the_same_by_compiled_and_plain_layers(changes):
    """Slots of dead hypotheses stand between those that a query may read."""
    plain = with_every_weight(small(**{"d_model": 64, "d_ff": 128, **changes}))
    quick = optimize_for_inference(copy.deepcopy(plain), "packed")
    assert is_compiled(quick)
    source, _ = batch()
    # more steps than the first slots have room for, so that those in use are moved
    found, expected = (
        beam_search(model, source, [40] * len(source), SearchOptions(beam=4, n_best=4))
        for model in (quick, plain)
    )
    for ours, theirs in zip(found, expected, strict=True):
        assert [one.tokens for one in ours] == [other.tokens for other in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert one.log_probabilities == pytest.approx(other.log_probabilities, abs=1e-5)


@pytest.mark.parametrize("changes", [{"norm_kind": "none"}, {"residuals": False}])
def test_what_no_compiled_function_knows_keeps_its_modules(changes):
    assert not is_compiled(optimize_for_inference(small(**changes), "packed"))


@pytest.mark.parametrize("width", [4, 8, 12, 24, 32])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("compiled")
def test_hypotheses_of_a_beam_are_computed_as_one_alone(kind, width):
    """Queries of a sentence are taken four at a time where there are four."""
    if kind == "bf16" and not can_multiply_bf16():
        return
    plain = small(d_model=64, d_ff=128, d_k=width, d_v=width)
    model = optimize_for_inference(plain, kind)
    source, target = batch()
    with torch.inference_mode():
        for count in (1, 3, 4, 6):
            state = model.start(model.encode(source))
            rows = torch.arange(len(source)).repeat_interleave(count)
            state = model.step(state, target[:, 0])[1].select(rows)
            together, _ = model.step(state, target[rows, 1])
            alone = model.start(model.encode(source))
            _, alone = model.step(alone, target[:, 0])
            expected, _ = model.step(alone, target[:, 1])
            torch.testing.assert_close(together, expected[rows], rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("compiled")
def test_a_sentence_does_not_depend_on_a_long_one_beside_it(kind):
    if kind == "bf16" and not can_multiply_bf16():
        return
    model = optimize_for_inference(small(d_model=64, d_ff=128), kind)
    assert is_compiled(model)
    source = torch.randint(4, 20, (3, 300))
    source[0, 9:] = source[1, 40:] = 0
    with torch.inference_mode():
        beside = model.encode(source).states
        for row, length in ((0, 9), (1, 40)):
            alone = model.encode(source[row : row + 1, :length]).states
            torch.testing.assert_close(beside[row, :length], alone[0], rtol=0, atol=0)
        alone = model.encode(source[2:]).states
        torch.testing.assert_close(beside[2], alone[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_threads_changes_nothing(kind):
    if kind == "bf16" and not can_multiply_bf16():
        return
    model = optimize_for_inference(small(d_model=64, d_ff=128), kind)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = outputs(model)
        torch.set_num_threads(3)
        other = outputs(model)
    finally:
        torch.set_num_threads(before)
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


@pytest.mark.parametrize(("flags", "expected"), [(set(), True), ({"amx_bf16"}, False)])
def test_processors_with_amx_leave_bf16_to_onednn(monkeypatch, flags, expected):
    monkeypatch.setattr(inference, "can_multiply_bf16", lambda: True)
    monkeypatch.setattr(inference, "processor_flags", lambda: flags)
    assert compiles_bf16() == expected
    kinds = "fp32, bf16 and int8" if expected else "fp32 and int8"
    assert f"--precision {kinds}," in describe_installation()["compiled"]
