import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.config.model import ModelConfig
from heedful.families.build import build_model
from heedful.kernels.attention import Packing, gather, repeat, scatter
from heedful.model.initialize import initialize

SMALL = {"d_model": 24, "d_ff": 40, "heads": 3, "encoder_layers": 2, "decoder_layers": 2}


@given(st.lists(st.integers(0, 6), min_size=1, max_size=5), st.integers(0, 99))
def test_packed_rows_come_back(lengths, seed):
    torch.manual_seed(seed)
    real = torch.arange(6).expand(len(lengths), 6) < torch.tensor(lengths)[:, None]
    packing = Packing.of(real)
    if not 0 < sum(lengths) <= 0.97 * real.numel():
        assert packing is None
        return
    x = torch.randn(*real.shape, 4, dtype=torch.float64)
    packed = gather(x, packing)
    assert torch.equal(packed[0], x[real])
    assert torch.equal(scatter(packed, packing), x * real.unsqueeze(2))
    assert torch.equal(repeat(packed, packing)[real], x[real])
    for function, given_x in ((packing.pack, x), (packing.unpack, packed)):
        assert torch.autograd.gradcheck(function, given_x.clone().requires_grad_())


def test_a_large_batch_has_a_round_number_of_tokens():
    real = torch.arange(30).expand(100, 30) < torch.randint(20, 31, (100, 1))
    packing = Packing.of(real)
    assert len(packing.places) % 64 == 0
    assert len(packing.places) - int(real.sum()) < 64
    assert packing.places.unique().equal(packing.places)
    x = torch.randn(100, 30, 2)
    assert torch.equal(scatter(gather(x, packing), packing)[real], x[real])


def test_rows_without_padding_are_left_alone():
    assert Packing.of(torch.ones(3, 4, dtype=torch.bool)) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "settings", [{}, {"decoder_start": "zero", "norm": "pre", "tie_embeddings": "none"}]
)
def test_a_model_gives_the_same_with_and_without_padding_inside(dtype, settings, monkeypatch):
    model = build_model(ModelConfig(**{**SMALL, **settings}), 30, 30, max_length=20)
    initialize(model, 1)
    model.to(dtype).eval()
    torch.manual_seed(1)
    source, target = torch.randint(4, 30, (4, 11)), torch.randint(4, 30, (4, 8))
    for row, (s, t) in enumerate([(11, 2), (3, 8), (6, 5), (1, 1)]):
        source[row, s:] = 0
        target[row, t:] = 0
    target[:, 0] = model.start_token
    real = target != 0
    real[:, 0] = True
    results = []
    for packed in (True, False):
        model.zero_grad()
        if not packed:
            monkeypatch.setattr(Packing, "of", classmethod(lambda cls, real: None))
        states = model.states(source, target)[real]
        (states * torch.linspace(-1, 1, states.numel()).view(states.shape)).sum().backward()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        results.append([states.detach(), *gradients])
    close = 0.02 if dtype == torch.bfloat16 else 1e-5
    for one, other in zip(*results, strict=True):
        assert float((one.float() - other.float()).norm()) <= close * float(other.float().norm())
