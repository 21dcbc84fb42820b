"""SimCut and R-Drop on a GPU: the numbers of a processor, and runs that stop and go on."""

import numpy as np
import pytest
import torch

from heedful.kernels.pair_loss import chunked_pair_loss, plain_pair_loss
from tests.gpu.runs import bytes_of, ended_well, log, on_gpu, perplexities, translated
from tests.support.models import FAMILIES, draw_gates, small
from tests.unit.training.objective.test_two_passes import FACTORS, PAIRS, batch_of, objective

NAMES = {"simcut": "SimCut", "rdrop": "R-Drop"}


@pytest.mark.parametrize("form", ["uniform", "others"])
@pytest.mark.parametrize("kind", FACTORS)
def test_the_loss_in_chunks_is_the_plain_one(kind, form, gpu):
    generator = torch.Generator().manual_seed(3)
    rows, classes, width = 5000, 900, 32
    first, second = (
        torch.randn(rows, width, generator=generator).to(gpu).requires_grad_() for _ in range(2)
    )
    weight = (0.3 * torch.randn(classes, width, generator=generator)).to(gpu).requires_grad_()
    bias = torch.randn(classes, generator=generator).to(gpu).requires_grad_()
    targets = torch.randint(0, classes, (rows,), generator=generator).to(gpu)
    inputs, found = (first, second, weight, bias), []
    for compute in (plain_pair_loss, chunked_pair_loss):
        sums = compute(first, second, targets, weight, bias, FACTORS[kind], 0.1, form)
        found.append((*sums, *torch.autograd.grad(sums.loss, inputs)))
    for plain, chunked in zip(*found, strict=True):
        torch.testing.assert_close(chunked, plain, rtol=1e-4, atol=1e-3)


def sums_and_gradients(chosen, model, batch):
    """The sums of a micro-batch, with the gradients of all weights, on the processor."""
    (part,) = chosen.parts(model, batch, np.arange(len(PAIRS)), 1)
    model.zero_grad()
    part.loss.backward()
    weights = model.named_parameters()
    return part.read_sums(), {n: p.grad.float().cpu() for n, p in weights if p.grad is not None}


@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("family", FAMILIES)
def test_loss_and_gradients_are_those_of_a_processor(family, kind, gpu, on_gpu):
    """Nothing is drawn: there is no dropout, and the second pass reads no word."""
    model, batch = small(**FAMILIES[family], dropout=0.0), batch_of()
    model.train(family == "recurrent")  # as cuDNN wants it; others draw or average then
    draw_gates(model)
    chosen, there = objective(kind, cut=1.0), on_gpu(model)
    sums, gradients = sums_and_gradients(chosen, model, batch)
    found, others = sums_and_gradients(chosen, there, batch.to(gpu))
    assert found.loss == pytest.approx(sums.loss, rel=1e-4)
    assert found.nll == pytest.approx(sums.nll, rel=1e-4)
    assert found.figure == pytest.approx(sums.figure, rel=1e-3) and sums.figure > 0.0
    assert others.keys() == gradients.keys()
    for name, gradient in gradients.items():
        away = (others[name] - gradient).abs().max()
        assert away <= 1e-4 + 1e-3 * gradient.abs().max(), name


@pytest.mark.parametrize("kind", FACTORS)
def test_bf16_is_close_to_fp32(kind, gpu, on_gpu):
    model, batch, chosen = small(dropout=0.0), batch_of(), objective(kind, cut=1.0)
    sums, gradients = sums_and_gradients(chosen, model, batch)
    rounded = on_gpu(model).to(torch.bfloat16)
    found, others = sums_and_gradients(chosen, rounded, batch.to(gpu))
    assert found.loss == pytest.approx(sums.loss, rel=0.02)
    assert found.figure == pytest.approx(sums.figure, rel=0.05)
    ours, exact = (
        torch.cat([part.flatten() for part in all_of.values()]) for all_of in (others, gradients)
    )
    assert (ours - exact).norm() <= 0.05 * exact.norm()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kind", FACTORS)
def test_a_run_learns_stops_before_its_second_pass_and_translates(
    heedful_cli, text, tmp_path, kind, precision
):
    out = tmp_path / "run"
    wanted = (f"train.objective={kind}", f"train.precision={precision}")
    wanted += ("train.second_pass_start=75",)
    first = heedful_cli(*on_gpu(text, out, *wanted, "train.steps=100"))
    ended_well(first)
    assert "steps: with padding" in first.stderr
    assert f"objective: {NAMES[kind]}, two passes from step 76" in first.stderr
    if precision == "bf16":
        assert f"the objective is {NAMES[kind]}" in first.stderr
    ended_well(heedful_cli(*on_gpu(text, out, *wanted), "--resume"))
    lines = [line for line in log(out) if "loss" in line]
    assert lines[-1]["divergence"] > 0.0
    assert all(line.get("divergence", 0.0) == 0.0 for line in lines if line["step"] <= 75)
    found = perplexities(out)
    assert found[-1] < 0.5 * found[0]
    lines = translated(heedful_cli, out, text, "cuda")
    assert len(lines) == len((text / "valid.en").read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("kind", FACTORS)
def test_a_deterministic_run_has_the_same_bytes_when_it_was_stopped(
    heedful_cli, text, tmp_path, kind
):
    """Dropout of both passes and the tokens that are cut are drawn as in the whole run."""
    wanted = (f"train.objective={kind}", "train.precision=bf16", "train.deterministic=true")
    wanted += ("train.keep_last=9",)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    ended_well(heedful_cli(*on_gpu(text, whole, *wanted, "train.steps=100")))
    ended_well(heedful_cli(*on_gpu(text, parts, *wanted, "train.steps=50")))
    ended_well(heedful_cli(*on_gpu(text, parts, *wanted, "train.steps=100"), "--resume"))
    assert len(bytes_of(whole)) >= 4
    assert bytes_of(parts) == bytes_of(whole)
