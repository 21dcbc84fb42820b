"""Attention over packed sentences, by its twin for every device."""

from types import SimpleNamespace

import pytest
import torch

from heedful.kernels import triton_launch, varlen
from heedful.kernels.varlen import (
    EVERYTHING,
    UP_TO_ITSELF,
    PackedRows,
    packed_attention,
    plain_packed_attention,
    tiled_attention,
)
from heedful.model.attention import scaled_dot_product_attention

HEADS, WIDTH = 2, 8


def rows(lengths, window=EVERYTHING):
    starts = torch.tensor([0, *torch.tensor(lengths).cumsum(0)], dtype=torch.int32)
    return PackedRows(starts, max(lengths), window)


def states(lengths, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, sum(lengths), HEADS * WIDTH, generator=generator).requires_grad_()


def one_by_one(queries, keys, values, lengths, key_lengths, window):
    """Equation 1 for each sentence by itself."""
    contexts = []
    first = first_key = 0
    for count, key_count in zip(lengths, key_lengths, strict=True):
        query, key, value = (
            part[:, start : start + size].unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
            for part, start, size in (
                (queries, first, count),
                (keys, first_key, key_count),
                (values, first_key, key_count),
            )
        )
        behind = torch.arange(key_count) - torch.arange(count).unsqueeze(1)
        mask = torch.ones(count, key_count, dtype=torch.bool)
        if window[0] >= 0:
            mask &= behind >= -window[0]
        if window[1] >= 0:
            mask &= behind <= window[1]
        context, _ = scaled_dot_product_attention(query, key, value, mask[None, None])
        contexts.append(context.transpose(1, 2).flatten(2))
        first, first_key = first + count, first_key + key_count
    return torch.cat(contexts, dim=1)


@pytest.mark.parametrize("window", [EVERYTHING, UP_TO_ITSELF, (2, 2), (3, 0)])
def test_each_sentence_attends_to_itself_alone(window):
    lengths = [3, 1, 7, 4]
    queries, keys, values = (states(lengths, seed) for seed in range(3))
    of_rows = rows(lengths, window)
    found = packed_attention(queries, keys, values, HEADS, of_rows, of_rows)
    expected = one_by_one(queries, keys, values, lengths, lengths, window)
    torch.testing.assert_close(found, expected)
    upstream = torch.randn_like(found)
    for ours, theirs in zip(
        torch.autograd.grad(found, (queries, keys, values), upstream),
        torch.autograd.grad(expected, (queries, keys, values), upstream),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


def test_sentences_of_another_text_are_those_of_the_same_number():
    lengths, key_lengths = [3, 1, 7], [2, 6, 4]
    queries = states(lengths, 0)
    keys, values = (states(key_lengths, seed) for seed in (1, 2))
    found = packed_attention(queries, keys, values, HEADS, rows(lengths), rows(key_lengths))
    expected = one_by_one(queries, keys, values, lengths, key_lengths, EVERYTHING)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("lengths", [[0, 3, 0, 2, 0], [0, 0]])
def test_a_place_without_a_sentence_adds_nothing(lengths):
    queries, keys, values = (states(lengths, seed) for seed in range(3))
    found = packed_attention(queries, keys, values, HEADS, rows(lengths), rows(lengths))
    expected = one_by_one(queries, keys, values, lengths, lengths, EVERYTHING)
    torch.testing.assert_close(found, expected)


def test_a_query_without_keys_gets_zeros_and_gives_none():
    queries, keys, values = states([2, 3], 0), states([0, 4], 1), states([0, 4], 2)
    found = packed_attention(queries, keys, values, HEADS, rows([2, 3]), rows([0, 4]))
    assert found[0, :2].eq(0).all()
    (gradient,) = torch.autograd.grad(found.sum(), (queries,), allow_unused=True)
    assert gradient[0, :2].eq(0).all()
    assert gradient.isfinite().all()


def test_the_operation_for_a_gpu_has_the_shapes_of_its_twin():
    query = torch.empty(5, HEADS, WIDTH, device="meta")
    starts = torch.empty(3, dtype=torch.int32, device="meta")
    context, sums = tiled_attention(query, query, query, starts, starts, 4, -1, 0)
    of_rows = rows([2, 3])
    plain = plain_packed_attention(
        *(torch.randn(5, HEADS, WIDTH) for _ in range(3)), of_rows, of_rows
    )
    assert context.shape == plain.shape
    assert sums.shape == (HEADS, 5)


@pytest.fixture
def triton(monkeypatch):
    """Stand in for Triton's kernels on a GPU."""

    def loss_rows(scores, *rest):
        if kernels.is_failing:
            raise RuntimeError("Failed to find C compiler.\nPlease specify CC")

    names = ("attention", "attention_gradients", "add_norm", "add_norm_gradients", "varlen_attn")
    kernels = SimpleNamespace(**dict.fromkeys(names, len), loss_rows=loss_rows, is_failing=False)
    monkeypatch.setattr(triton_launch, "find_spec", lambda name: name)
    monkeypatch.setattr(triton_launch.torch, "zeros", lambda *_, **__: torch.ones(1))
    for module in (varlen, triton_launch):
        monkeypatch.setattr(module, "import_module", lambda name: kernels)
    monkeypatch.setattr(varlen, "_loaded", {})
    triton_launch.triton_kernels.cache_clear()
    yield kernels
    triton_launch.triton_kernels.cache_clear()


class OnGpu(torch.Tensor):
    device = property(lambda self: torch.device("cuda", 0))


HALVES = torch.ones(1, dtype=torch.bfloat16).as_subclass(OnGpu)


def test_without_a_compiler_no_kernel_of_triton_is_used(triton):
    triton.is_failing = True
    with pytest.warns(UserWarning, match="used: Failed to find C compiler.$"):
        assert varlen.tiles_of(HALVES) is None
    assert varlen.has_packed_kernel(HALVES)  # torch's own is there


def test_plain_kernels_are_those_of_torch_on_a_gpu_too(triton, monkeypatch):
    assert varlen.tiles_of(HALVES) is not None
    monkeypatch.setattr(varlen, "is_plain_torch", lambda: True)
    assert varlen.tiles_of(HALVES) is None
