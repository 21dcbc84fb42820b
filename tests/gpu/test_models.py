"""Every family of models gives on a GPU the numbers that it gives on a processor."""

import pytest
import torch

from heedful.kernels.loss import chunked_loss, plain_loss
from heedful.model.attention import scaled_dot_product_attention
from tests.support.models import FAMILIES, SETTINGS, batch, draw_gates, small
from tests.support.torch_internals import hidden

EVERY = [*FAMILIES.values(), *SETTINGS]

fused_attention = torch.nn.functional.scaled_dot_product_attention


def loss_and_gradients(model, source, target):
    """Loss of a pair's target, with the gradients of all weights, on the processor."""
    states = model.states(source, target[:, :-1])
    real = target[:, 1:] != 0
    weight, bias = model.output.weight, model.output.bias
    loss, _ = chunked_loss(states[real], target[:, 1:][real], weight, bias)
    model.zero_grad()
    loss.backward()
    gradients = {n: p.grad.cpu() for n, p in model.named_parameters() if p.grad is not None}
    return loss.detach().cpu(), gradients


@pytest.mark.parametrize("changes", EVERY, ids=str)
def test_loss_and_gradients_are_those_of_a_processor(changes, gpu, on_gpu):
    model = small(**changes, dropout=0.0)
    model.train(
        changes == FAMILIES.get("recurrent")
    )  # as cuDNN wants it; others draw or average then
    draw_gates(model)
    there = on_gpu(model)
    source, target = batch()
    here = loss_and_gradients(model, source, target)
    loss, gradients = loss_and_gradients(there, source.to(gpu), target.to(gpu))
    torch.testing.assert_close(loss, here[0], rtol=1e-5, atol=1e-4)
    assert gradients.keys() == here[1].keys()
    for name, gradient in here[1].items():
        scale = gradient.abs().max()
        away = (gradients[name] - gradient).abs().max()
        assert away <= 1e-4 + 1e-3 * scale, name


@pytest.mark.parametrize("changes", EVERY, ids=str)
def test_bf16_is_close_to_fp32(changes, gpu, on_gpu):
    model = small(**changes)
    draw_gates(model)
    source, target = batch()
    with torch.no_grad():
        exact = model.states(source, target)
        rounded = on_gpu(model).to(torch.bfloat16).states(source.to(gpu), target.to(gpu))
    assert rounded.dtype == torch.bfloat16
    away = (rounded.float().cpu() - exact).norm() / exact.norm()
    # a gate may choose another expert where two are alike
    assert away < (0.5 if changes == FAMILIES.get("experts") else 0.05)


@pytest.mark.family("recurrent")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_recurrent_layers_run_step_by_step_where_weights_cannot_be_laid_out(dtype, gpu, on_gpu):
    model = on_gpu(small(**FAMILIES["recurrent"])).to(dtype)
    source, target = (ids.to(gpu) for ids in batch())
    with torch.no_grad():
        expected = model.states(source, target)
        with hidden("torch._cudnn_rnn_flatten_weight") as missed:
            by_steps = model.states(source, target)
    assert missed
    bound = 1e-4 if dtype == torch.float32 else 0.05
    assert (by_steps - expected).norm() <= bound * expected.norm()


@pytest.mark.parametrize("form", ["uniform", "others"])
def test_the_loss_in_chunks_is_the_plain_one(form, gpu):
    generator = torch.Generator().manual_seed(3)
    rows, classes, width = 5000, 900, 32
    states = torch.randn(rows, width, generator=generator).to(gpu).requires_grad_()
    weight = torch.randn(classes, width, generator=generator).to(gpu).requires_grad_()
    bias = torch.randn(classes, generator=generator).to(gpu).requires_grad_()
    targets = torch.randint(0, classes, (rows,), generator=generator).to(gpu)
    found = []
    for compute in (plain_loss, chunked_loss):
        loss, nll = compute(states, targets, weight, bias, 0.1, form)
        found.append((loss, nll, *torch.autograd.grad(loss, (states, weight, bias))))
    for plain, chunked in zip(*found, strict=True):
        torch.testing.assert_close(chunked, plain, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("keys", [5, 300])
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_fused_attention_is_equation_one(keys, precision, gpu):
    generator = torch.Generator().manual_seed(4)
    shape = (3, 2, keys, 16)
    query, key, value = (
        torch.randn(shape, generator=generator).to(gpu, precision) for _ in range(3)
    )
    mask = torch.ones(3, 1, 1, keys, dtype=torch.bool, device=gpu)
    mask[1, ..., keys // 2 :] = False
    plain, _ = scaled_dot_product_attention(query, key, value, mask)
    fused = fused_attention(query, key, value, attn_mask=mask)
    error = 1e-4 if precision == torch.float32 else 0.02
    torch.testing.assert_close(fused, plain, rtol=error, atol=error)
