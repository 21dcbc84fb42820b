import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.kernels import attention as compiled_attention
from heedful.kernels import dropout as compiled_dropout
from heedful.kernels.attention import plain_short_attention
from heedful.kernels.linear import Int8Linear
from heedful.kernels.native import compile
from heedful.kernels.native.compile import processor_flags
from heedful.kernels.native.product import (
    NativeBf16Linear,
    NativeFp32Linear,
    NativeInt8Linear,
    can_multiply,
    can_multiply_bf16,
    kernels_kind,
    load_products,
)
from heedful.kernels.native.variants import VARIANTS


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "heedful"


@pytest.fixture(scope="module", params=["native", *VARIANTS])
def variant(request):
    return request.param


@pytest.fixture(scope="module")
def products(variant, compiled):
    """The products of this very processor, and those of wheels that it can run."""
    del compiled
    with pytest.MonkeyPatch.context() as patch:
        # Each is compiled once for the same sources, and kept in the user's cache.
        patch.setenv("HEEDFUL_NATIVE", "compile")
        if variant != "native":
            patch.setattr(compile, "_NATIVE", VARIANTS[variant][1])
            if not VARIANTS[variant][0] <= processor_flags():
                assert compile.native_library("steps")
                return None  # compiled, and this processor cannot run it
        return load_products()


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8, 21, 64])
@pytest.mark.parametrize(("inner", "outer"), [(4, 1), (64, 64), (100, 37), (512, 130)])
def test_products_are_those_of_torch(products, rows, inner, outer):
    if products is None:
        return
    generator = torch.Generator().manual_seed(rows + inner)
    weight = torch.randn(outer, inner, generator=generator)
    bias = torch.randn(outer, generator=generator)
    x = torch.randn(rows, inner, generator=generator) * torch.logspace(-2, 2, rows).unsqueeze(1)
    for some, rows_in, nonnegative in ((bias, x, 0), (None, x, 0), (bias, x.relu(), 1)):
        native = NativeInt8Linear(weight, some, bool(nonnegative), products)
        plain = Int8Linear(weight, some, bool(nonnegative), levels=native.levels)
        expected = plain(rows_in)
        # a number in the middle between two steps may be rounded either way
        step = rows_in.abs().amax(1, keepdim=True) / plain.levels * weight.abs().max()
        assert ((native(rows_in) - expected).abs() <= 2 * step + 1e-5).all()
        assert (native(rows_in) - expected).norm() <= 1e-3 * expected.norm() + 1e-6
        floats = NativeFp32Linear(weight, some, products)
        exact = rows_in.double() @ weight.t().double() + (0.0 if some is None else some)
        assert (floats(rows_in) - exact).norm() <= 2e-6 * exact.norm() + 1e-6


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8, 21, 64])
@pytest.mark.parametrize(("inner", "outer"), [(4, 1), (64, 64), (100, 37), (512, 130)])
def test_products_of_bf16_round_inputs_and_weights_only(products, rows, inner, outer):
    if products is None or not products.can_multiply_bfloat16():
        return
    generator = torch.Generator().manual_seed(rows + inner)
    weight = torch.randn(outer, inner, generator=generator)
    bias = torch.randn(outer, generator=generator)
    x = torch.randn(rows, inner, generator=generator) * torch.logspace(-2, 2, rows).unsqueeze(1)
    rounded = [one.bfloat16().double() for one in (x, weight)]
    exact = rounded[0] @ rounded[1].t() + bias
    found = NativeBf16Linear(weight, bias, library=products)(x)
    assert (found - exact).norm() <= 2e-6 * exact.norm() + 1e-6


def test_products_of_bf16_are_there_where_the_instructions_are(variant, products):
    if products is None:
        return
    if variant == "avx512-bf16":
        assert products.can_multiply_bfloat16()
    elif variant in VARIANTS:
        assert not products.can_multiply_bfloat16()
        with pytest.raises(RuntimeError, match="cannot multiply in bf16"):
            NativeBf16Linear(torch.randn(8, 8), None, library=products)
    else:
        assert products.can_multiply_bfloat16() == ("avx512_bf16" in processor_flags())


@pytest.mark.parametrize("inner", [4, 8, 100])
def test_the_largest_numbers_do_not_overflow(products, inner):
    if products is None:
        return
    for weight in (torch.ones(37, inner), -torch.ones(37, inner)):
        for nonnegative in (False, True):
            found = NativeInt8Linear(weight, None, nonnegative, products)(torch.ones(9, inner))
            torch.testing.assert_close(found, torch.ones(9, inner) @ weight.t())


@pytest.mark.parametrize("number", [float("nan"), -float("nan"), float("inf")])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_a_row_that_holds_no_number_gives_none(products, number, nonnegative):
    if products is None:
        return
    generator = torch.Generator().manual_seed(3)
    weight, x = (torch.randn(rows, 100, generator=generator) for rows in (37, 11))
    expected = NativeInt8Linear(weight, None, nonnegative, products)(x)
    x[4, 71] = number
    found = NativeInt8Linear(weight, None, nonnegative, products)(x)
    assert not found[4].isfinite().any()
    others = [row for row in range(11) if row != 4]
    assert torch.equal(found[others], expected[others])


def test_a_row_of_zeros_gives_the_bias(compiled):
    del compiled
    bias = torch.randn(24)
    for nonnegative in (False, True):
        found = NativeInt8Linear(torch.randn(24, 16), bias, nonnegative)(torch.zeros(3, 16))
        torch.testing.assert_close(found, bias.expand(3, -1))


@pytest.mark.parametrize("kind", [NativeFp32Linear, NativeBf16Linear, NativeInt8Linear])
@given(rows=st.integers(1, 20), seed=st.integers(0, 100))
def test_a_row_does_not_depend_on_its_neighbors(kind, rows, seed):
    if kind is NativeBf16Linear and not can_multiply_bf16():
        return
    generator = torch.Generator().manual_seed(seed)
    linear = kind(torch.randn(24, 32, generator=generator), None)
    x = torch.randn(rows, 32, generator=generator) * torch.logspace(-3, 3, rows).unsqueeze(1)
    alone = torch.cat([linear(row.unsqueeze(0)) for row in x])
    torch.testing.assert_close(linear(x), alone, rtol=0, atol=0)


def test_a_width_that_the_instructions_cannot_take_is_refused():
    assert not can_multiply(6)
    with pytest.raises(RuntimeError, match="cannot multiply"):
        NativeInt8Linear(torch.randn(8, 6), None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_of_every_variant_is_that_of_torch(products, dtype, monkeypatch):
    if products is None:
        return
    monkeypatch.setattr(compiled_attention, "native_products", lambda: products)
    torch.manual_seed(1)
    x = torch.randn(3, 21, 2 * (24 + 24 + 40)).to(dtype).requires_grad_()
    mask = torch.ones(21, 21, dtype=torch.bool).tril().view(1, 1, 21, 21)
    upstream = torch.randn(3, 21, 80).to(dtype)
    found = []
    for attend in (compiled_attention.native_short_attention, plain_short_attention):
        context = attend(x, None, mask, 2, 24)
        found.append([context, *torch.autograd.grad(context, x, upstream)])
    close = 0.01 if dtype == torch.bfloat16 else 2e-6
    for one, other in zip(*found, strict=True):
        assert (one.double() - other.double()).norm() < close * other.double().norm()


def test_dropout_of_every_variant_draws_the_same(products, monkeypatch):
    if products is None:
        return
    y = torch.ones(10_000)
    expected = compiled_dropout.native_add_thinned(None, y, 77, 20_000, 1.0)
    monkeypatch.setattr(compiled_dropout, "native_products", lambda: products)
    assert torch.equal(compiled_dropout.native_add_thinned(None, y, 77, 20_000, 1.0), expected)


def test_kernels_are_named_with_the_numbers_of_a_vector(compiled, monkeypatch):
    cpu = torch.device("cpu")
    assert kernels_kind(cpu) in ("compiled-8", "compiled-16")
    assert kernels_kind(torch.device("meta")) == "plain"
    monkeypatch.setattr("heedful.kernels.native.product.native_products", lambda: None)
    assert kernels_kind(cpu) == "plain"
