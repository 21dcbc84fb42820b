import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.kernels.attention import SHORT, short_attention, use_cpu_kernel
from heedful.model.attention import MultiHeadAttention, scaled_dot_product_attention
from heedful.model.layout import causal_mask, padding_mask


def door(qkv, kv, mask, heads, d_k):
    """Call `short_attention` with queries, keys and values cut apart."""
    width = heads * d_k
    if kv is None:
        parts = qkv.split([width, width, qkv.size(2) - 2 * width], dim=2)
    else:
        parts = (qkv, *kv.split([width, kv.size(2) - width], dim=2))
    return short_attention(*parts, mask, heads)


def by_head(x, heads):
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


def plainly(queries, offered, mask, heads, d_k):
    """The same through the function of the paper's equation."""
    both = queries[..., heads * d_k :] if offered is None else offered
    context, _ = scaled_dot_product_attention(
        by_head(queries[..., : heads * d_k], heads),
        by_head(both[..., : heads * d_k], heads),
        by_head(both[..., heads * d_k :], heads),
        mask,
    )
    return context.transpose(1, 2).flatten(2)


@given(
    rows=st.integers(1, 3),
    queries=st.integers(1, 40),
    keys=st.integers(1, 40),
    heads=st.integers(1, 3),
    d_k=st.integers(1, 5),
    d_v=st.integers(1, 5),
    itself=st.booleans(),
    mask=st.sampled_from(["none", "padding", "causal"]),
    dtype=st.sampled_from([torch.float64, torch.bfloat16]),
    seed=st.integers(0, 99),
)
def test_values_and_gradients_are_those_of_the_equation(
    rows, queries, keys, heads, d_k, d_v, itself, mask, dtype, seed
):
    torch.manual_seed(seed)
    keys = queries if itself or mask == "causal" else keys
    widths = (heads * d_k, heads * (d_k + d_v))
    leaves = [torch.randn(rows, queries, sum(widths) if itself else widths[0])]
    leaves += [] if itself else [torch.randn(rows, keys, widths[1])]
    leaves = [leaf.to(dtype).requires_grad_() for leaf in leaves]
    mask = {
        "none": None,
        "causal": causal_mask(queries),
        "padding": (torch.rand(rows, 1, 1, keys) < 0.6).index_fill_(3, torch.tensor([0]), True),
    }[mask]
    upstream = torch.randn(rows, queries, heads * d_v).to(dtype)
    results = []
    for function, wide in ((plainly, True), (door, False)):
        exact = [leaf.double() if wide else leaf for leaf in leaves]
        found = function(*(*exact, None)[:2], mask, heads, d_k)
        gradients = torch.autograd.grad(found, leaves, upstream.to(found.dtype))
        results.append([tensor.double() for tensor in (found.detach(), *gradients)])
    close = {"atol": 0.06, "rtol": 0.03} if dtype == torch.bfloat16 else {}
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, **close)


def test_the_gradients_are_those_of_small_changes():
    torch.manual_seed(1)
    queries = torch.randn(2, 3, 2 * 4, dtype=torch.float64, requires_grad=True)
    offered = torch.randn(2, 5, 2 * 7, dtype=torch.float64, requires_grad=True)
    ids = torch.tensor([[5, 6, 7, 0, 0], [5, 6, 7, 8, 9]])
    assert torch.autograd.gradcheck(
        lambda q, o: door(q, o, padding_mask(ids, 0), 2, 4), (queries, offered)
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_module_gives_the_same_either_way(dtype, monkeypatch):
    torch.manual_seed(2)
    attention = MultiHeadAttention(24, 3, 5, 7).to(dtype)
    x, memory = torch.randn(2, 9, 24).to(dtype), torch.randn(2, 6, 24).to(dtype)
    mask = padding_mask(torch.tensor([[5, 6, 7, 0, 0, 0], [5, 6, 7, 8, 9, 4]]), 0)
    results = []
    for short in (False, True):
        if not short:
            monkeypatch.setattr("heedful.model.attention.use_cpu_kernel", lambda x, keys: False)
        attention.zero_grad()
        found = attention(x, x, causal_mask(9))[0] + attention(x, memory, mask)[0]
        found.square().sum().backward()
        results.append([found.detach(), *(p.grad for p in attention.parameters())])
        monkeypatch.undo()
    for one, other in zip(*results, strict=True):
        distance = (one.float() - other.float()).norm() / one.float().norm()
        assert float(distance) < (0.02 if dtype == torch.bfloat16 else 1e-5)


def test_long_rows_and_other_types_go_another_way():
    x = torch.zeros(1)
    assert use_cpu_kernel(x, SHORT)
    assert not use_cpu_kernel(x, SHORT + 1)
    assert not use_cpu_kernel(x.double(), 3)
