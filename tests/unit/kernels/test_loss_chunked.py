import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.kernels import loss as losses
from heedful.kernels.loss import SMOOTHING_FORMS, chunked_loss, plain_loss, smoothed_target
from heedful.search.scoring import token_log_probabilities


def test_smoothing_on_five_classes_is_as_printed():
    targets = torch.tensor([2])
    uniform = smoothed_target(targets, 5, 0.1, "uniform")[0].tolist()
    assert uniform == pytest.approx([0.02, 0.02, 0.92, 0.02, 0.02])
    others = smoothed_target(targets, 5, 0.1, "others")[0].tolist()
    assert others == pytest.approx([0.025, 0.025, 0.9, 0.025, 0.025])


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        # logits 1..5, right class 2: log-sum-exp is 5.4519144, so the logarithms of the
        # probabilities are -4.4519, -3.4519, -2.4519, -1.4519, -0.4519 and sum to -12.259572
        ("uniform", 0.9 * 2.4519144 + 0.1 / 5 * 12.259572),
        ("others", 0.9 * 2.4519144 + 0.1 / 4 * (12.259572 - 2.4519144)),
    ],
)
def test_the_loss_on_five_classes_is_as_computed_by_hand(form, expected):
    states, table = torch.eye(1), torch.arange(1.0, 6.0).unsqueeze(1)
    for function in (plain_loss, chunked_loss):
        loss, nll = function(states, torch.tensor([2]), table, None, 0.1, form)
        assert float(loss) == pytest.approx(expected, abs=1e-5)
        assert float(nll) == pytest.approx(2.4519144, abs=1e-5)


def test_uniform_smoothing_equals_torchs_own():
    torch.manual_seed(1)
    states, table = torch.randn(20, 8), torch.randn(30, 8)
    targets = torch.randint(30, (20,))
    expected = torch.nn.functional.cross_entropy(
        states @ table.T, targets, reduction="sum", label_smoothing=0.1
    )
    torch.testing.assert_close(chunked_loss(states, targets, table)[0], expected)


@given(
    rows=st.integers(1, 300),
    classes=st.integers(2, 400),
    smoothing=st.sampled_from([0.0, 0.1, 0.3]),
    form=st.sampled_from(SMOOTHING_FORMS),
    with_bias=st.booleans(),
    seed=st.integers(0, 99),
)
def test_chunks_give_the_sums_and_gradients_of_the_definition(
    rows, classes, smoothing, form, with_bias, seed
):
    torch.manual_seed(seed)
    leaves = [torch.randn(rows, 8), torch.randn(classes, 8)]
    leaves += [torch.randn(classes)] if with_bias else []
    leaves = [leaf.requires_grad_() for leaf in leaves]
    states, table, bias = (*leaves, None)[:3]
    targets = torch.randint(classes, (rows,))
    results = []
    for function in (plain_loss, chunked_loss):
        loss, nll = function(states, targets, table, bias, smoothing, form)
        results.append((loss.detach(), nll.detach(), *torch.autograd.grad(loss / 3, leaves)))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=2e-4, rtol=2e-5)


def test_many_chunks_equal_one(monkeypatch):
    torch.manual_seed(1)
    states = torch.randn(500, 8, requires_grad=True)
    table, targets = torch.randn(50, 8), torch.randint(50, (500,))
    whole = chunked_loss(states, targets, table)[0]
    (gradient,) = torch.autograd.grad(whole, states)
    monkeypatch.setattr(losses, "_CHUNK_LOGITS", 50 * 64)
    assert len(list(losses.chunk_rows(500, 50))) == 8
    parts = chunked_loss(states, targets, table)[0]
    torch.testing.assert_close(parts, whole)
    torch.testing.assert_close(torch.autograd.grad(parts, states)[0], gradient)


def test_rows_are_kept_in_equal_shares_of_whole_chunks(monkeypatch):
    monkeypatch.setattr(losses, "_CHUNK_LOGITS", 50 * 64)
    monkeypatch.setattr(losses, "_KEPT_ROWS", 200)
    torch.manual_seed(1)
    states, table = torch.randn(500, 8), torch.randn(50, 8, requires_grad=True)
    bias, targets = torch.randn(50, requires_grad=True), torch.randint(50, (500,))
    assert losses._rows_kept(500, 50, states.device) == 256
    results = []
    for function in (plain_loss, chunked_loss):
        loss, _ = function(states, targets, table, bias)
        results.append(torch.autograd.grad(loss, [table, bias]))
    torch.testing.assert_close(*results, atol=1e-4, rtol=1e-5)


def test_bf16_gradients_stay_close_to_fp32():
    torch.manual_seed(1)
    exact = [torch.randn(600, 32) / 4, torch.randn(300, 32) / 4, torch.randn(300)]
    targets = torch.randint(300, (600,))
    found = []
    for dtype in (torch.float32, torch.bfloat16):
        # both from the same rounded numbers: what differs is the arithmetic alone
        leaves = [leaf.bfloat16().to(dtype).requires_grad_() for leaf in exact]
        loss, _ = chunked_loss(leaves[0], targets, leaves[1], leaves[2])
        found.append(torch.autograd.grad(loss, leaves))
    for one, other in zip(*found, strict=True):
        assert float((one - other.float()).norm() / one.norm()) < 0.01


def test_bf16_stays_close_to_fp32():
    torch.manual_seed(1)
    states, table = torch.randn(200, 32) / 4, torch.randn(300, 32) / 4
    targets = torch.randint(300, (200,))
    exact, nll = chunked_loss(states, targets, table)
    rounded, rounded_nll = chunked_loss(states.bfloat16(), targets, table.bfloat16())
    assert rounded.dtype == torch.float32
    torch.testing.assert_close(rounded, exact, rtol=2e-3, atol=0)
    torch.testing.assert_close(rounded_nll, nll, rtol=2e-3, atol=0)


def test_hopeless_targets_give_a_finite_loss():
    states = torch.tensor([[100.0]], requires_grad=True)
    table = torch.tensor([[10.0], [-10.0]])
    loss, nll = chunked_loss(states, torch.tensor([1]), table, None, 0.0)
    loss.backward()
    assert float(nll) == pytest.approx(2000.0)
    assert math.isfinite(float(states.grad))


def test_given_tokens_get_their_log_probabilities():
    torch.manual_seed(1)
    states, table, bias = torch.randn(9, 4), torch.randn(7, 4), torch.randn(7)
    targets = torch.randint(7, (9,))
    expected = torch.log_softmax(states @ table.T + bias, 1)[torch.arange(9), targets]
    found = token_log_probabilities(states, targets, table, bias)
    torch.testing.assert_close(found, expected)


def test_an_unknown_form_is_refused():
    with pytest.raises(ValueError, match="form must be one of"):
        plain_loss(torch.ones(1, 1), torch.tensor([0]), torch.ones(2, 1), None, 0.1, "other")


def test_a_class_that_is_none_is_refused():
    for target in (5, -1):
        with pytest.raises((IndexError, RuntimeError)):
            chunked_loss(torch.ones(1, 2), torch.tensor([target]), torch.ones(5, 2))
