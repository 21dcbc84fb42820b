"""What heedful computes with each internal name of torch, it computes without it as well."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from heedful.bench import own_products
from heedful.bench.own_products import products_alone
from heedful.config.train import TrainConfig
from heedful.families.convolution import Convolution
from heedful.families.table1 import LayerSizes
from heedful.kernels import torch_internals
from heedful.kernels.attention import plain_short_attention
from heedful.kernels.linear import Int8Linear, PrepackedLinear, linear, linear_forward, lookup
from heedful.kernels.recurrent import can_flatten
from heedful.kernels.torch_internals import INTERNALS, copy_all, internal
from heedful.paper.claims.peak_memory import peak_bytes
from heedful.paper.dependent_products import count_products
from heedful.paper.layer_kinds import KINDS
from heedful.training.optimizer import MixedPrecisionOptimizer
from tests.support.families import HERE
from tests.support.torch_internals import hidden

CUDNN = ("torch._use_cudnn_rnn_flatten_weight", "torch._cudnn_rnn_flatten_weight")
DISPATCH = "torch.utils._python_dispatch.TorchDispatchMode"


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator).to(dtype)


def products() -> list[torch.Tensor]:
    """Products with bias and ReLU, forwards and backwards, and with a prepacked weight."""
    x, weight, bias = (numbers(*shape).requires_grad_() for shape in ((7, 12), (5, 12), (5,)))
    out = linear(x, weight, bias, relu=True)
    gradients = torch.autograd.grad(out, (x, weight, bias), numbers(7, 5))
    packed = PrepackedLinear(weight, bias)
    with torch.no_grad():
        return [out, *gradients, packed(x), packed(x, relu=True), PrepackedLinear(weight, None)(x)]


def rounded_products() -> list[torch.Tensor]:
    x, weight, bias = (numbers(*s, dtype=torch.bfloat16) for s in ((7, 12), (5, 12), (5,)))
    return [linear_forward(x, weight, bias), linear_forward(x, weight, relu=True)]


def int8_products() -> list[torch.Tensor]:
    x, weight, bias = numbers(7, 12), numbers(5, 12), numbers(5)
    signed, positive = Int8Linear(weight, bias), Int8Linear(weight, None, nonnegative=True)
    return [signed(x), signed(x, relu=True), positive(x.abs())]


def attention() -> list[torch.Tensor]:
    results = []
    for dtype in (torch.float32, torch.bfloat16):
        qkv = numbers(3, 5, 24, dtype=dtype).requires_grad_()
        mask = torch.ones(5, 5, dtype=torch.bool).tril()[None, None]
        out = plain_short_attention(qkv, None, mask, 2, 4)
        results += torch.autograd.grad(out, qkv, numbers(3, 5, 8, dtype=dtype))
    return results


def additive_scores() -> list[torch.Tensor]:
    query, keys, energy = (numbers(*s).requires_grad_() for s in ((3, 1, 4), (3, 6, 4), (4,)))
    from heedful.families.recurrent.products import LoopProducts

    loop = LoopProducts()
    scores = loop.compare_additively(query, keys, energy)
    scores = scores + loop.compare_additively(2 * query, keys, energy)
    return [scores, *torch.autograd.grad(scores, (query, keys, energy), numbers(3, 1, 6))]


def embedding() -> list[torch.Tensor]:
    table, ids = numbers(9, 4).requires_grad_(), torch.tensor([[1, 5, 1], [8, 1, 0]])
    return [*torch.autograd.grad(lookup(ids, table), table, numbers(2, 3, 4))]


def training(optimizer: str) -> Callable[[], list[torch.Tensor]]:
    """Three steps, with everything that an optimizer can do."""
    settings = {"momentum": 0.9} if optimizer == "sgd" else {}

    def steps() -> list[torch.Tensor]:
        results = []
        for precision in ("fp32", "bf16"):
            torch.manual_seed(1)
            model = nn.Linear(4, 3)
            weights = MixedPrecisionOptimizer(
                model,
                precision,
                TrainConfig(optimizer=optimizer, weight_decay=0.1, ema_decay=0.9, **settings),
            )
            weights._converts_together = True  # as on a GPU
            for step in range(3):
                x = numbers(6, 4) + step
                model(x.to(model.weight.dtype)).float().square().sum().backward()
                weights.accumulate_gradients()
                weights.step(0.01, 1 / 6)
            results += [*weights.weights().values(), *weights.moments().values()]
            results += [parameter.detach().float() for parameter in model.parameters()]
        return results

    return steps


def convolution() -> list[torch.Tensor]:
    """Steps with a normed weight, which changes in place between them."""
    torch.manual_seed(1)
    layer, results = Convolution(4, 6, 3, causal=True, weight_norm=True).eval(), []
    with torch.no_grad():
        past = layer.first_past(2, numbers(2, 4))
        for factor in (1.0, 1.0, 2.0):
            layer.weight[0].mul_(factor)
            layer.gain.mul_(factor)
            out, past = layer.step(numbers(2, 4), past)
            results.append(out)
    return results


def recurrence() -> list[torch.Tensor]:
    """A layer in both directions, where the device is asked as if it were a GPU."""
    from heedful.families.recurrent import cells

    torch.manual_seed(1)
    layer = cells.RecurrentLayer("lstm", 4, 5, bidirectional=True)
    mask = torch.arange(6) < torch.tensor([[2], [6], [1]])
    with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "can_flatten", lambda _: can_flatten(torch.device("cuda")))
        out, last = layer(numbers(3, 6, 4), mask)
    return [out, *last.forward, *last.backward]


def observed() -> list[torch.Tensor]:
    """Chains of products of all layers, and memory."""
    chains = [count_products(name, LayerSizes(n=32, d=64, k=3, r=8)) for name in KINDS]
    x = numbers(10, 10)
    peaks = [
        peak_bytes(lambda: torch.softmax(x @ x + x, -1)),
        peak_bytes(lambda: [x + n for n in range(3)]),
        peak_bytes(lambda: nn.functional.linear(x.view(2, 5, 10), x).relu_().unflatten(2, (2, 5))),
    ]
    return [torch.tensor(chains), torch.tensor(peaks)]


WORK = {
    "torch.ops.mkldnn._linear_pointwise": products,
    "torch.ops.mkldnn._is_mkldnn_bf16_supported": rounded_products,
    "torch.ops.mkldnn._reorder_linear_weight": products,
    "torch.ops.onednn.qlinear_prepack": int8_products,
    "torch.ops.onednn.qlinear_pointwise": int8_products,
    "torch.ops.aten.threshold_backward": products,
    "torch.ops.aten._softmax_backward_data": attention,
    "torch.ops.aten.embedding_dense_backward": embedding,
    "torch._foreach_copy_": training("adam"),
    "torch._foreach_mul_": training("sgd"),
    "torch._foreach_lerp_": training("adam"),
    "torch.optim.adamw.adamw(grad_scale)": training("adam"),
    "torch.optim.sgd.sgd(grad_scale)": training("sgd"),
    "torch.Tensor._version": convolution,
    DISPATCH: observed,
}
if "recurrent" in HERE:
    WORK |= {"torch.ops.aten.sigmoid_backward": additive_scores, **dict.fromkeys(CUDNN, recurrence)}


def test_each_internal_name_has_its_work_here():
    of_recurrence = {"torch.ops.aten.sigmoid_backward", *CUDNN}
    left_out = {"torch._addmm_activation"}  # tests/gpu/test_kernels.py: a GPU's
    left_out |= set() if "recurrent" in HERE else of_recurrence
    assert WORK.keys() == INTERNALS.keys() - left_out


def test_this_torch_has_every_internal_name():
    lacking = [
        f"torch {torch.__version__} lacks {name}, which {used.module} uses for speed; "
        f"instead: {used.instead}. Find what replaces it, or drop it from INTERNALS with its use."
        for name, used in INTERNALS.items()
        if internal(name) is None
    ]
    assert not lacking, "\n".join(lacking)


@pytest.mark.parametrize("name", WORK)
def test_the_result_is_the_same_without_it(name):
    expected = WORK[name]()
    with hidden(name) as missed:
        results = WORK[name]()
    assert missed == {name}
    for ours, theirs in zip(results, expected, strict=True):
        torch.testing.assert_close(ours, theirs, **_tolerance(theirs.dtype))


def _tolerance(dtype: torch.dtype) -> dict[str, float]:
    if not dtype.is_floating_point:
        return {"atol": 0, "rtol": 0}
    return {"atol": 1e-2, "rtol": 1e-2} if dtype == torch.bfloat16 else {"atol": 1e-5, "rtol": 1e-5}


def test_the_result_is_the_same_without_any():
    expected = [tensor for work in WORK.values() for tensor in work()]
    with hidden(*WORK) as missed:
        results = [tensor for work in WORK.values() for tensor in work()]
    # without the first of two that belong together the second is not looked up
    assert len(missed) >= len(WORK) - 3
    for ours, theirs in zip(results, expected, strict=True):
        torch.testing.assert_close(ours, theirs, **_tolerance(theirs.dtype))


def test_products_of_a_backward_pass_are_counted_or_no_figure_is_given(monkeypatch):
    monkeypatch.setattr(own_products, "_seconds", lambda *_: 1.0)
    x, weight = numbers(4, 5), numbers(6, 5).requires_grad_()

    def forward():
        return linear(x, weight).sum()

    def step():
        forward().backward()

    assert (products_alone(forward), products_alone(step)) == (1, 2)
    with hidden(DISPATCH):
        assert (products_alone(forward), products_alone(step)) == (1, None)


@pytest.mark.parametrize(
    "name",
    [
        "torch._foreach_nothing_",
        "torch.ops.mkldnn._nothing",
        "torch.ops.nothing._linear_pointwise",
        "torch.utils._nothing.TorchDispatchMode",
        "torch.optim.adamw.adamw(nothing)",
        "torch.optim.adamw.nothing(grad_scale)",
    ],
)
def test_a_name_that_torch_lacks_is_missing(name):
    assert torch_internals._resolve(name) is None


def test_a_name_that_is_taken_out_of_torch_is_missing(monkeypatch):
    copy = internal("torch._foreach_copy_")
    assert copy is torch._foreach_copy_
    monkeypatch.delattr(torch, "_foreach_copy_")
    internal.cache_clear()
    try:
        assert internal("torch._foreach_copy_") is None
        target = torch.zeros(3)
        copy_all([target], [torch.ones(3)])
        assert target.tolist() == [1, 1, 1]
    finally:
        monkeypatch.undo()
        internal.cache_clear()


def test_names_that_the_table_lacks_are_refused():
    with pytest.raises(KeyError, match="_foreach_sqrt_"):
        internal("torch._foreach_sqrt_")
