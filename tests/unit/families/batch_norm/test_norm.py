"""Batch norm beside layer norm: real positions alone, and running averages for inference."""

import pytest
import torch
from torch import nn

from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.families.batch_norm.norm import BatchNorm
from heedful.model.weights import is_running_average, named_weights, running_averages
from tests.support.models import batch, small

REAL = torch.tensor([[True] * 5, [True] * 3 + [False] * 2, [True] + [False] * 4])


def torch_norm(width=6):
    """torch's own, over (tokens, width)."""
    return nn.BatchNorm1d(width, eps=1e-6)


def drawn(norm):
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        norm.weight.uniform_(0.5, 2.0, generator=generator)
        norm.bias.uniform_(-1.0, 1.0, generator=generator)
    return norm


@pytest.mark.parametrize("padded", [True, False])
def test_it_is_torch_s_over_the_real_positions(padded):
    ours, theirs = drawn(BatchNorm(6)), drawn(torch_norm())
    x = torch.randn(3, 5, 6, requires_grad=True)
    if padded:
        found = ours(x, REAL)[REAL]
        packed = x[REAL]
    else:
        packed = x.flatten(0, 1)
        found = ours(x).flatten(0, 1)
    wanted = theirs(packed)
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-6)
    weights = torch.randn_like(wanted)
    of_ours = torch.autograd.grad((found * weights).sum(), (x, ours.weight, ours.bias))
    of_theirs = torch.autograd.grad((wanted * weights).sum(), (x, theirs.weight, theirs.bias))
    for one, other in zip(of_ours, of_theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
    for name in ("running_mean", "running_var"):
        assert getattr(ours, name).equal(getattr(theirs, name))
    ours.eval(), theirs.eval()
    torch.testing.assert_close(ours(x).flatten(0, 1), theirs(x.flatten(0, 1)))


def test_what_stands_at_padding_changes_nothing():
    ours, again = BatchNorm(6), BatchNorm(6)
    x = torch.randn(3, 5, 6)
    out = ours(x, REAL)
    assert not out[~REAL].any()
    assert again(x.masked_fill(~REAL.unsqueeze(2), 1e9), REAL).equal(out)
    assert ours.running_var.equal(again.running_var)


def test_one_position_is_normalized_by_the_averages():
    ours = BatchNorm(6)
    x = torch.randn(1, 1, 6)
    torch.testing.assert_close(ours(x), x / (1 + 1e-6) ** 0.5)
    assert not ours.running_mean.any()


def test_half_precision_is_normalized_in_full():
    ours = BatchNorm(6)
    x = 1000 + torch.randn(4, 50, 6)
    rounded = x.bfloat16()
    found = ours(rounded)
    assert found.dtype == torch.bfloat16
    wanted = torch_norm()(rounded.float().flatten(0, 1)).view_as(x)
    torch.testing.assert_close(found.float(), wanted, atol=2e-2, rtol=1e-2)
    assert ours.running_mean.dtype == torch.float32


@pytest.mark.parametrize("training", [True, False])
def test_a_model_in_double_precision_stays_in_it(training):
    ours, theirs = BatchNorm(6).double().train(training), torch_norm().double().train(training)
    x = torch.randn(3, 5, 6, dtype=torch.float64)
    wanted = theirs(x.flatten(0, 1))
    torch.testing.assert_close(ours(x).flatten(0, 1), wanted, atol=1e-12, rtol=1e-12)
    assert ours.running_var.equal(theirs.running_var)


def test_it_can_begin_anew():
    ours = BatchNorm(6)
    ours(torch.randn(2, 5, 6))
    ours.reset_parameters()
    assert not ours.running_mean.any() and (ours.running_var == 1).all()


def test_a_checkpoint_stores_the_running_averages():
    model = small(norm_kind="batch", norm="pre")
    averages = running_averages(model)
    norms = 2 * 2 + 2 * 3 + 2  # sub-layers of two layers on each side, and both final norms
    assert len(averages) == 2 * norms
    assert named_weights(model).keys() == dict(model.named_parameters()).keys() | averages.keys()
    assert running_averages(small()) == {}
    assert {name for name in named_weights(model) if is_running_average(name)} == averages.keys()


def test_in_training_the_sentences_of_a_batch_mix_and_in_evaluation_they_do_not():
    source, target = batch()
    model = small(norm_kind="batch", dropout=0.0)
    together, alone = model.states(source, target)[:1], model.states(source[:1], target[:1])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)
    model.train()
    assert (
        model.states(source, target)[:1] - model.states(source[:1], target[:1])
    ).abs().max() > 0.01


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_more_padding_changes_nothing_in_training(norm):
    source, target = batch()
    target[1, 3:] = 0
    longer = [torch.cat([ids, torch.zeros(3, 4, dtype=torch.long)], 1) for ids in (source, target)]
    one, other = (small(norm_kind="batch", norm=norm, dropout=0.0).train() for _ in range(2))
    found = one.states(source, target), other.states(*longer)[:, : target.size(1)]
    real = target != 0
    torch.testing.assert_close(found[0][real], found[1][real], atol=1e-5, rtol=1e-5)
    averages = (list(running_averages(model).values()) for model in (one, other))
    for before, after in zip(*averages, strict=True):
        torch.testing.assert_close(before, after, atol=1e-6, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:TF32")  # torch's own, of switching its kernels off
def test_padding_that_was_removed_changes_nothing_in_training():
    source, target = batch()
    one, other = (small(norm_kind="batch", dropout=0.0).train() for _ in range(2))
    with torch.backends.mkldnn.flags(enabled=False):  # then rows keep their padding
        padded = one.states(source, target)
    torch.testing.assert_close(other.states(source, target), padded, atol=1e-5, rtol=1e-5)


def test_a_plain_dict_of_tensors_is_loaded():
    model, other = small(norm_kind="batch"), small(norm_kind="batch")
    tensors = {name: tensor + 1 for name, tensor in model.state_dict().items()}
    other.load_state_dict(tensors)
    for name, tensor in other.state_dict().items():
        torch.testing.assert_close(tensor, tensors[name])


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_layers_with_shared_norms_are_refused(side):
    settings = [f"model.{side}_layers=2", "model.norm_kind=batch", f"model.{side}_sharing"]
    load_config("tiny", [*settings[:2], f"{settings[2]}=1,2"])
    with pytest.raises(SettingError) as caught:
        load_config("tiny", [*settings[:2], f"{settings[2]}=1,1"])
    assert str(caught.value) == (
        f"`model.{side}_sharing` must be empty if `model.norm_kind` is batch, because the running "
        "averages of a norm cannot serve several layers, but got 1,1."
    )
