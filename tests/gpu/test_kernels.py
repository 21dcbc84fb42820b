"""Kernels of a GPU against their plain twins, which run on both devices."""

import pytest
import torch
from torch import nn

from heedful.kernels.add_norm import add_and_normalize, add_norm, has_add_norm, plain_add_norm
from heedful.kernels.fusion import fuse_kernels
from heedful.kernels.graphs import Graph
from heedful.kernels.linear import linear
from heedful.kernels.masked_loss import plain_rows, rows_function
from heedful.kernels.varlen import (
    EVERYTHING,
    UP_TO_ITSELF,
    PackedRows,
    has_packed_kernel,
    packed_attention,
    tiles_of,
)

HALF = torch.bfloat16


def close(found, expected, bound=0.01):
    """Rounded numbers differ from exact ones by a share of their size."""
    found, expected = found.float().cpu(), expected.float().cpu()
    assert found.isfinite().all()
    assert (found - expected).norm() <= bound * expected.norm() + 1e-6


def rows(lengths, window, device):
    starts = torch.tensor([0, *torch.tensor(lengths).cumsum(0)], dtype=torch.int32)
    return PackedRows(starts.to(device), max(lengths), window)


@pytest.mark.parametrize("width", [64, 16, 24])
@pytest.mark.parametrize("longest", [70, 600], ids=["tiles", "torch's kernel"])
@pytest.mark.parametrize("window", [EVERYTHING, UP_TO_ITSELF, (3, 3), (5, 0)])
def test_packed_attention_is_its_twin(window, longest, width, gpu):
    lengths, heads = [5, 17, 1, longest, 33, 32, 0, 0], 2
    generator = torch.Generator().manual_seed(0)
    shape = 1, sum(lengths), heads * width
    inputs = [torch.randn(shape, generator=generator) for _ in range(3)]
    upstream = torch.randn(shape, generator=generator)
    found = []
    for device, dtype in ((torch.device("cpu"), torch.float32), (gpu, HALF)):
        parts = [part.to(device, dtype).requires_grad_() for part in inputs]
        of_rows = rows(lengths, window, device)
        context = packed_attention(*parts, heads, of_rows, of_rows)
        gradients = torch.autograd.grad(context, parts, upstream.to(device, dtype))
        found.append((context, *gradients))
    assert has_packed_kernel(torch.zeros(1, device=gpu, dtype=HALF))
    for here, there in zip(*found, strict=True):
        close(there, here)


def test_sentences_of_another_text_may_be_longer_or_empty(gpu):
    lengths, key_lengths, heads = [5, 40, 1, 3, 0], [70, 7, 9, 0, 4], 2
    generator = torch.Generator().manual_seed(1)
    sizes = [sum(lengths), sum(key_lengths), sum(key_lengths)]
    inputs = [torch.randn(1, size, heads * 16, generator=generator) for size in sizes]
    found = []
    for device, dtype in ((torch.device("cpu"), torch.float32), (gpu, HALF)):
        parts = [part.to(device, dtype).requires_grad_() for part in inputs]
        both = (rows(counts, EVERYTHING, device) for counts in (lengths, key_lengths))
        context = packed_attention(*parts, heads, *both)
        found.append((context, *torch.autograd.grad(context.float().pow(2).sum(), parts)))
    for here, there in zip(*found, strict=True):
        close(there, here, 0.02)


def test_attention_by_tiles_is_the_same_in_every_run(gpu):
    parts = [torch.randn(1, 4000, 128, device=gpu, dtype=HALF).requires_grad_() for _ in range(3)]
    of_rows = rows([40] * 100, UP_TO_ITSELF, gpu)
    runs = []
    for _ in range(3):
        context = packed_attention(*parts, 2, of_rows, of_rows)
        runs.append((context, *torch.autograd.grad(context.sum(), parts)))
    for other in runs[1:]:
        assert all(torch.equal(one, two) for one, two in zip(runs[0], other, strict=True))


@pytest.mark.parametrize("classes", [37, 5000, 37000])
@pytest.mark.parametrize("dtype", [torch.float32, HALF])
def test_rows_of_the_loss_are_their_twin(classes, dtype, gpu):
    generator = torch.Generator().manual_seed(2)
    scores = (3 * torch.randn(70, classes, generator=generator)).to(gpu, dtype)
    targets = torch.randint(0, classes, (70,), generator=generator).to(gpu)
    counts = (torch.rand(70, generator=generator) > 0.2).to(gpu)
    off = 0.1 / classes
    kernel = rows_function(scores)
    assert kernel is not plain_rows
    plain, found = scores.clone(), scores.clone()
    expected = plain_rows(plain, targets, counts, off, 0.9 + off)
    losses = kernel(found, targets, counts, off, 0.9 + off)
    for ours, theirs in zip(losses, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found, plain, rtol=1e-2, atol=1e-5)
    assert found[~counts].eq(0).all()


@pytest.mark.parametrize("width", [512, 300, 1024])
@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5])
def test_dropout_sum_and_norm_are_their_twin(width, probability, gpu):
    generator = torch.Generator().manual_seed(3)
    x, y, upstream = (torch.randn(130, width, generator=generator).to(gpu, HALF) for _ in range(3))
    weight, bias = (torch.randn(width, generator=generator).to(gpu, HALF) for _ in range(2))
    keys = torch.tensor([123456789, -987654321], dtype=torch.int32, device=gpu)
    threshold = round(probability * (1 << 16))
    found = []
    for dtype, function in ((torch.float32, plain_add_norm), (HALF, add_norm)):
        parts = [part.to(dtype).requires_grad_() for part in (x, y, weight, bias)]
        out = function(*parts, keys, threshold, 1e-6)
        out = out if dtype == torch.float32 else out[0]
        found.append((out, *torch.autograd.grad(out, parts, upstream.to(dtype))))
    for exact, rounded in zip(*found, strict=True):
        close(rounded, exact, 0.02)
    dropped = found[0][2] == 0
    assert torch.equal(found[1][2] == 0, dropped) or not probability
    assert float(dropped.float().mean()) == pytest.approx(probability, abs=0.02)


def test_without_training_nothing_is_dropped(gpu):
    norm = nn.LayerNorm(64, device=gpu, dtype=HALF)
    x, y = torch.randn(2, 3, 7, 64, device=gpu, dtype=HALF)
    assert not has_add_norm(x, norm)
    with fuse_kernels():
        assert has_add_norm(x, norm)
    close(add_and_normalize(x, y, 0.0, norm), norm.float()(x.float() + y.float()))


def test_relu_in_the_product_is_relu_after_it(gpu):
    generator = torch.Generator().manual_seed(4)
    x, weight = (torch.randn(size, 64, generator=generator) for size in (50, 96))
    bias, upstream = torch.randn(96, generator=generator), torch.randn(50, 96, generator=generator)
    found = []
    for device, dtype in ((torch.device("cpu"), torch.float32), (gpu, HALF)):
        parts = [part.to(device, dtype).requires_grad_() for part in (x, weight, bias)]
        with fuse_kernels():
            out = linear(*parts, relu=True)
        found.append((out, *torch.autograd.grad(out, parts, upstream.to(device, dtype))))
    for here, there in zip(*found, strict=True):
        close(there, here, 0.05)  # a few numbers round to the other side of zero
    assert found[1][0].min() == 0


def test_a_graph_reads_new_numbers_and_draws_by_the_seed(gpu):
    source, target = torch.zeros(1000, device=gpu), torch.zeros(1000, device=gpu)
    graph = Graph(lambda: target.copy_(nn.functional.dropout(source, 0.5)), gpu)
    source.fill_(1.0)
    seen = []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        graph.replay()
        seen.append(target.clone())
    assert torch.equal(seen[0], seen[2])
    assert not torch.equal(seen[0], seen[1])
    assert set(seen[0].tolist()) == {0.0, 2.0}


def test_tiles_are_there(gpu):
    assert tiles_of(torch.zeros(1, device=gpu, dtype=HALF)) is not None
    assert tiles_of(torch.zeros(1, dtype=HALF)) is None
