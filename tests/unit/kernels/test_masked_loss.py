import pytest
import torch

from heedful.kernels import masked_loss as module
from heedful.kernels.loss import SMOOTHING_FORMS, plain_loss
from heedful.kernels.masked_loss import masked_loss


@pytest.mark.parametrize("form", SMOOTHING_FORMS)
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("rows_at_once", [1000, 64])
def test_rows_that_do_not_count_add_nothing(form, has_bias, rows_at_once, monkeypatch):
    def chunks(states, classes):
        return (slice(first, first + rows_at_once) for first in range(0, len(states), rows_at_once))

    monkeypatch.setattr(module, "_chunks", chunks)
    torch.manual_seed(0)
    states, table = (torch.randn(size, 8).requires_grad_() for size in (150, 37))
    bias = torch.randn(37).requires_grad_() if has_bias else None
    targets, counts = torch.randint(0, 37, (150,)), torch.rand(150) > 0.3
    weights = [part for part in (states, table, bias) if part is not None]
    loss, nll = masked_loss(states, targets, counts, table, bias, 0.1, form)
    plain = plain_loss(states[counts], targets[counts], table, bias, 0.1, form)
    torch.testing.assert_close((loss, nll), plain, rtol=1e-5, atol=1e-4)
    found = torch.autograd.grad(2.0 * loss, weights)
    for ours, theirs in zip(found, torch.autograd.grad(2.0 * plain[0], weights), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert found[0][~counts].eq(0).all()


def test_chunks_cover_all_rows_and_take_little_memory():
    states = torch.zeros(100_000, 1, dtype=torch.bfloat16)
    parts = [*module._chunks(states, 37_000)]
    assert [part.start for part in parts[1:]] == [part.stop for part in parts[:-1]]
    assert (parts[0].start, parts[-1].stop) == (0, 100_000)
    assert (parts[0].stop - parts[0].start) * 37_000 * 2 <= 1 << 27
