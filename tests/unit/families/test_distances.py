"""What all positions by distance have in common, and what does not go with them."""

import pytest
import torch

from heedful.config.load import load_config
from heedful.config.model import ModelConfig
from heedful.errors import SettingError
from heedful.families.build import build_model
from heedful.families.distances import distance_clashes
from heedful.model.initialize import initialize
from tests.support.families import cases
from tests.support.models import batch, small

KINDS = cases(
    {
        "relative-buckets": {
            "positions": "relative-buckets",
            "relative_buckets": {"count": 6, "max_distance": 9},
        },
        "rotary": {"positions": "rotary", "rotary": {"base": 20.0}},
        "shaw": {"positions": "shaw", "shaw": {"max_distance": 3}},
    }
)


def drawn(kind, **changes):
    """A model whose tables are not zero."""
    model = small(**KINDS[kind], **changes)
    generator = torch.Generator().manual_seed(4)
    for name, weight in model.named_parameters():
        if "score_bias" in name:
            weight.data.normal_(0.0, 2.0, generator=generator)
    return model


pytestmark = pytest.mark.parametrize("kind", KINDS)


def test_order_counts(kind):
    source, target = (ids[:1] for ids in batch())
    model = drawn(kind)
    turned = source.flip(1)
    moved = model.states(source, target) - model.states(turned, target)
    assert moved.abs().max() > 0.05


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_step_is_the_newest_row_whatever_the_beam_does(kind, norm):
    model = drawn(kind, norm=norm)
    source, _ = batch()
    generator = torch.Generator().manual_seed(2)
    with torch.inference_mode():
        memory = model.encode(source)
        state, written = model.start(memory), torch.full((3, 1), model.start_token)
        for number in range(40):
            states, state = model.step(state, written[:, -1])
            width = len(written) // 3
            wanted = model.states(source.repeat_interleave(width, 0), written)[:, -1]
            torch.testing.assert_close(states, wanted, atol=2e-5, rtol=2e-5)
            rows = torch.randint(width, (3, 2 + number % 3), generator=generator)
            rows = (rows + width * torch.arange(3)[:, None]).flatten()
            state = state.select(rows)
            tokens = torch.randint(4, 20, (len(rows), 1), generator=generator)
            written = torch.cat([written[rows], tokens], dim=1)


def test_padding_and_its_removal_change_nothing(kind):
    model = drawn(kind)
    source, target = batch()
    target[1, 3:] = 0
    together = model.states(source, target)
    for row, (length, written) in enumerate(((7, 5), (4, 3), (2, 5))):
        alone = model.states(source[row : row + 1, :length], target[row : row + 1, :written])
        torch.testing.assert_close(together[row, :written], alone[0], atol=1e-5, rtol=1e-5)


def test_long_sentences_use_another_kernel_with_the_same_result(kind):
    model = drawn(kind)
    source = torch.randint(4, 20, (2, 300), generator=torch.Generator().manual_seed(1))
    source[0, 280:] = 0
    with torch.inference_mode():
        weights = []
        found, expected = model.encode(source).states, model.encode(source, weights).states
    torch.testing.assert_close(found[0, :280], expected[0, :280], atol=2e-5, rtol=2e-5)
    torch.testing.assert_close(found[1], expected[1], atol=2e-5, rtol=2e-5)
    assert weights[0].shape == (2, 2, 300, 300)


@pytest.mark.family("recurrent")
def test_other_encoders_may_stand_before_it(kind):
    settings = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder": "recurrent", **KINDS[kind]}
    recurrent = {"recurrent": {"hidden_size": 8}}
    model = build_model(ModelConfig(**settings, **recurrent), 20, 20, max_length=12).eval()
    initialize(model, 1)
    assert model.states(*batch()).isfinite().all()


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("model.attention.window=3", "`model.attention.window` must be none"),
        pytest.param(
            "model.attention.encoder=fastformer",
            "`model.attention.encoder` must be attention",
            marks=pytest.mark.family("fastformer"),
        ),
        pytest.param(
            "model.encoder=convs2s",
            "`model.positions` must not be ",
            marks=pytest.mark.family("convs2s"),
        ),
    ],
)
def test_what_has_no_such_attention_is_refused(kind, setting, words):
    with pytest.raises(SettingError) as caught:
        load_config("tiny", [f"model.positions={KINDS[kind]['positions']}", setting])
    assert words in str(caught.value)


def test_a_transformer_has_it(kind):
    assert not list(distance_clashes(ModelConfig(**KINDS[kind]), products=True))
