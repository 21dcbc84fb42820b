import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses import FakeTensorMode

from heedful.kernels.attention import (
    Packing,
    _addresses,
    _NativeCall,
    can_attend,
    native_short_attention,
    plain_short_attention,
    short_attention,
)
from heedful.model.layout import causal_mask

CLOSE = {torch.float32: 2e-6, torch.bfloat16: 0.01}


def door(qkv, kv, mask, heads, d_k):
    """Call `short_attention` with queries, keys and values cut apart."""
    width = heads * d_k
    if kv is None:
        parts = qkv.split([width, width, qkv.size(2) - 2 * width], dim=2)
    else:
        parts = (qkv, *kv.split([width, kv.size(2) - width], dim=2))
    return short_attention(*parts, mask, heads)


def with_holes(real):
    """Leave some of the tokens out, but not the first of a row."""
    return real & (torch.rand(real.shape) < 0.7).index_fill_(1, torch.tensor([0]), True)


def prefixes(lengths, time):
    """True at the first positions of each row."""
    return torch.arange(time) < torch.tensor(lengths).unsqueeze(1)


def tokens(real, packing, width, dtype):
    shape = (*real.shape, width) if packing is None else (1, len(packing.places), width)
    return torch.randn(shape).to(dtype).requires_grad_()


def results(attend, leaves, mask, heads, d_k, packings, upstream=None):
    """Context and gradients, and the upstream gradient, made where it is not given."""
    context = attend(*leaves, mask, heads, d_k, packings)
    upstream = torch.randn_like(context) if upstream is None else upstream
    given = [leaf for leaf in leaves if leaf is not None]
    return [context.detach(), *torch.autograd.grad(context, given, upstream)], upstream


def distance(one, other):
    return float((one.double() - other.double()).norm() / other.double().norm().clamp(min=1e-9))


@given(
    lengths=st.lists(st.integers(1, 37), min_size=1, max_size=5),
    others=st.lists(st.integers(1, 70), min_size=5, max_size=5),
    heads=st.integers(1, 3),
    d_k=st.sampled_from([1, 5, 16, 24, 64]),
    d_v=st.sampled_from([1, 7, 16, 40]),
    cross=st.booleans(),
    packed=st.booleans(),
    holes=st.booleans(),
    mask=st.sampled_from(["none", "keys", "causal", "heads"]),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    seed=st.integers(0, 99),
)
def test_values_and_gradients_are_those_of_the_plain_twin(
    lengths, others, heads, d_k, d_v, cross, packed, holes, mask, dtype, seed
):
    torch.manual_seed(seed)
    query_real = prefixes(lengths, max(lengths))
    query_real = with_holes(query_real) if holes else query_real
    key_real = prefixes(others[: len(lengths)], max(others)) if cross else query_real
    key_real = with_holes(key_real) if holes and cross else key_real
    packings = (None, None)
    if packed:
        packings = Packing.of(query_real), Packing.of(key_real)
    width, other = heads * d_k, heads * (d_k + d_v)
    leaves = [tokens(query_real, packings[0], width if cross else width + other, dtype)]
    leaves.append(tokens(key_real, packings[1], other, dtype) if cross else None)
    queries, keys = query_real.size(1), key_real.size(1)
    allowed = key_real[:, None, None]
    if mask == "none" and not any(packings):
        allowed = None
    elif mask == "causal" and not cross:
        allowed = allowed & causal_mask(queries)
    elif mask == "heads":
        by_head = torch.rand(len(lengths), heads, queries, keys) < 0.7
        allowed = allowed & by_head.index_fill_(3, torch.tensor([0]), True)
    found, upstream = results(native_short_attention, leaves, allowed, heads, d_k, packings)
    plain, _ = results(plain_short_attention, leaves, allowed, heads, d_k, packings, upstream)
    for one, other in zip(found, plain, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        # A single key has the weight one, so that queries and keys have no gradients.
        apart = (one.double() - other.double()).norm()
        assert apart <= CLOSE[dtype] * (other.double().norm() + upstream.double().norm())


def test_the_number_of_threads_changes_nothing():
    torch.manual_seed(1)
    real = prefixes([9, 30, 1, 17, 30, 4], 30)
    packing = Packing.of(real)
    x = tokens(real, packing, 3 * 32, torch.float32)
    rest = real[:, None, None], 2, 16, (packing, packing)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            upstream = None if not found else found[0][1]
            found.append(results(native_short_attention, (x, None), *rest, upstream))
    finally:
        torch.set_num_threads(before)
    for one in found[1:]:
        assert all(map(torch.equal, one[0], found[0][0]))


def test_a_row_does_not_depend_on_those_beside_it():
    torch.manual_seed(2)
    x = torch.randn(3, 20, 3 * 32)
    mask = prefixes([20, 7, 13], 20)[:, None, None]
    together = native_short_attention(x, None, mask, 2, 16)
    alone = native_short_attention(x[1:2], None, mask[1:2], 2, 16)
    assert torch.equal(together[1], alone[0])


def test_forbidden_keys_have_no_share_at_all():
    x = torch.ones(1, 5, 3 * 16)
    x[0, 3:] = float("inf")  # even these numbers would show in any sum
    mask = (torch.arange(5) < 3).view(1, 1, 1, 5)
    found = native_short_attention(x, None, mask, 1, 16)[0, :3]
    assert not found.isfinite().any()  # zero times infinity is not a number, as in the plain twin
    x[0, 3:] = 1e30
    found = native_short_attention(x, None, mask, 1, 16)[0, :3]
    assert torch.equal(found, torch.ones(3, 16))


def test_a_query_that_may_attend_to_nothing_is_no_number_as_in_the_plain_twin():
    x = torch.randn(2, 4, 3 * 8)
    mask = torch.ones(2, 1, 4, 4, dtype=torch.bool)
    mask[1, 0, 2] = False
    for attend in (native_short_attention, plain_short_attention):
        assert attend(x, None, mask, 1, 8).isnan().nonzero()[:, :2].unique(dim=0).tolist() == [
            [1, 2]
        ]


def test_long_rows_and_empty_ones():
    torch.manual_seed(3)
    real = prefixes([256, 0, 16], 256)  # 272 tokens, so no padding is kept
    source = prefixes([5, 2, 0], 9)
    packings = Packing.of(real), Packing.of(source)
    leaves = [tokens(real, packings[0], 16, torch.float32)]
    leaves.append(tokens(source, packings[1], 32, torch.float32))
    found, _ = results(native_short_attention, leaves, None, 2, 8, packings)
    assert all(part.isfinite().all() for part in found)
    assert packings[0].starts.tolist() == [0, 256, 256, 272]
    assert packings[1].starts.tolist() == [0, 5, 7, 7]
    context, d_query, d_key_value = (part[0] for part in found)
    assert not context[256:].any() and not d_query[256:].any()  # of no keys
    assert not d_key_value[5:7].any()  # of no queries
    assert context[:256].all() and d_key_value[:5].all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_other_types_go_another_way(dtype):
    assert not can_attend(torch.zeros(1, 3, 24, dtype=dtype), None, None, 1, 8)
    x = torch.randn(1, 3, 24).to(dtype)
    plain = plain_short_attention(x, None, None, 1, 8)
    assert torch.equal(door(x, None, None, 1, 8), plain)


def test_without_compiled_functions_attention_is_plain(monkeypatch):
    where = "heedful.kernels.attention.native_products"
    assert can_attend(torch.zeros(1, 3, 24), None, None, 1, 8)
    monkeypatch.setattr(where, lambda: None)
    assert not can_attend(torch.zeros(1, 3, 24), None, None, 1, 8)


def test_what_the_compiled_function_cannot_read_goes_to_torch():
    query, kv = torch.zeros(4, 5, 16), torch.zeros(4, 7, 32)
    assert can_attend(query, kv, None, 1, 16)
    for wrong in (kv[:2], torch.zeros(9, 7, 32), kv.bfloat16(), kv.to("meta")):
        assert not can_attend(query, wrong, None, 1, 16)
        with pytest.raises(RuntimeError):
            door(query, wrong, None, 1, 16)
    assert not can_attend(query, kv, torch.zeros(4, 1, 1, 7), 1, 16)
    with FakeTensorMode() as mode:
        assert door(*map(mode.from_tensor, (query, kv)), None, 1, 16).shape == query.shape


def test_defaults_of_torch_change_nothing():
    query, kv = torch.randn(4, 5, 16), torch.randn(4, 7, 32)
    plain = native_short_attention(query, kv, None, 1, 16)
    try:
        torch.set_default_dtype(torch.bfloat16)
        with torch.device("meta"):
            found = native_short_attention(query, kv, None, 1, 16)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(found, plain)


def test_second_derivatives_are_refused_rather_than_wrong():
    x = torch.randn(2, 3, 24, requires_grad=True)
    found = native_short_attention(x, None, None, 1, 8)
    (gradient,) = torch.autograd.grad(found.square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.square().sum().backward()


def test_numbers_need_not_lie_side_by_side():
    torch.manual_seed(4)
    x = torch.randn(6, 2, 3 * 16).transpose(0, 1).requires_grad_()
    upstream = torch.randn(6, 2, 16).transpose(0, 1)
    mask = torch.ones(6, 2, dtype=torch.bool).t()[:, None, None]
    found, _ = results(native_short_attention, (x, None), mask, 1, 16, (None, None), upstream)
    plain, _ = results(plain_short_attention, (x, None), mask, 1, 16, (None, None), upstream)
    assert all(distance(*pair) < 1e-6 for pair in zip(found, plain, strict=True))


@pytest.mark.parametrize(
    ("shape", "heads", "d_k", "tokens"),
    [
        ((1, 5, 24), 1, 8, 11),  # fewer tokens than the packing has
        ((1, 15, 24), 1, 8, 11),  # more
        ((2, 11, 24), 1, 8, 11),  # two rows of tokens
        ((1, 3, 16), 1, 8, 0),  # no values
        ((1, 3, 23), 2, 4, 0),  # heads of unequal values
    ],
)
def test_sizes_that_do_not_fit_are_left_to_torch(shape, heads, d_k, tokens):
    packing = Packing.of(prefixes([2, 2, 7], 20)) if tokens else None
    assert packing is None or len(packing.places) == tokens
    assert not can_attend(torch.zeros(shape), None, None, heads, d_k, (packing, packing))


def test_queries_of_another_width_are_left_to_torch():
    assert not can_attend(torch.zeros(1, 3, 9), torch.zeros(1, 4, 16), None, 1, 8)


@pytest.mark.parametrize(("d_k", "d_v"), [(3, 65), (65, 3), (16, 16), (1, 33)])
def test_working_memory_is_not_left(d_k, d_v):
    heads, sentinel, behind = 2, -12345.0, 4096
    qkv = torch.randn(2, 19, heads * (2 * d_k + d_v))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        call = _NativeCall(qkv, None, None, heads, d_k, (None, None))
        size = call.memory.numel()
        memory = torch.full((size + behind,), sentinel)
        context = torch.empty(2, 19, heads * d_v)
        call.library.short_attention(call.address, memory.data_ptr(), context.data_ptr())
        gradient = torch.empty_like(qkv)
        call.library.short_attention_gradients(
            *(call.address, torch.randn_like(context).data_ptr(), memory.data_ptr()),
            *_addresses(gradient, None, heads * d_k),
        )
    finally:
        torch.set_num_threads(threads)
    assert (memory[size:] == sentinel).all()
    assert (memory[:size] != sentinel).any()


def test_a_tensor_whose_sign_is_turned_when_it_is_read_goes_to_torch():
    x = torch.randn(1, 3, 24)
    turned = torch.complex(torch.zeros_like(x), x).conj().imag
    assert turned.is_neg()
    assert not can_attend(turned, None, None, 1, 8)
    torch.testing.assert_close(door(turned, None, None, 1, 8), door(-x, None, None, 1, 8))
