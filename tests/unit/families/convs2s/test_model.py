"""ConvS2S: equal to an independent pass in NumPy, step by step, and without any padding."""

import jaxtyping
import numpy as np
import pytest
import torch

from heedful.config.model import ModelConfig
from heedful.errors import HeedfulError
from heedful.families.build import build_model
from heedful.families.convs2s import model as convs2s
from heedful.families.convs2s.config import layers_of
from heedful.model.initialize import initialize
from tests.support import numpy_convs2s

ENCODER, DECODER = "2x(8,3) (12,1) (6,4,2)", "(8,3) (8,2,0) (12,3) (12,1,3)"
LENGTHS = [(7, 5), (2, 6), (1, 1), (4, 2)]
CHOICES = {
    "all layers": {},
    "first layer": {"attention": "first"},
    "last layer": {"attention": "last"},
    "two layers": {"attention": "2 3"},
    "plain weights": {"weight_norm": False},
    "narrow readout": {"out_embed_dim": 5},
}


def built(choices=None, **settings):
    """A model of doubles whose gains and biases are not those of the start."""
    choices = {"encoder_layers": ENCODER, "decoder_layers": DECODER, **(choices or {})}
    config = ModelConfig(
        encoder="convs2s",
        decoder="convs2s",
        d_model=10,
        convs2s=choices,
        **{"positions": "learned", "tie_embeddings": "none", "dropout": 0.0, **settings},
    )
    model = build_model(config, 20, 20, max_length=12)
    initialize(model, 1)
    generator = torch.Generator().manual_seed(2)
    for name, weight in model.named_parameters():
        if name.endswith(("gain", "bias")):
            with torch.no_grad():
                weight.uniform_(0.3, 2.0, generator=generator)
    return model.double().eval()


def batch(lengths=LENGTHS):
    """Padded ids of pairs with these lengths; targets begin with the start symbol."""
    generator = torch.Generator().manual_seed(3)
    longest = [max(side) for side in zip(*lengths, strict=True)]
    rows = [torch.zeros(len(lengths), time, dtype=torch.int64) for time in longest]
    for row, pair in enumerate(lengths):
        for side, length in enumerate(pair):
            rows[side][row, :length] = torch.randint(4, 20, (length,), generator=generator)
    rows[1][:, 0] = 2
    return rows


def numpy_states(model, source, target, attending):
    """The NumPy pass over one sentence."""
    weights = {name: weight.detach().numpy() for name, weight in model.named_parameters()}

    def embedded(ids, side):
        x = weights[f"embed_{side}.weight"][ids.numpy()]
        positions = weights.get(f"{side}_positions.weight")
        return x if positions is None else x + positions[: len(ids)]

    layers = [layers_of(text) for text in (ENCODER, DECODER)]
    sentence = embedded(source, "source"), embedded(target, "target")
    return numpy_convs2s.states(weights, *sentence, *layers, attending)


@pytest.mark.parametrize("choices", CHOICES.values(), ids=CHOICES)
@pytest.mark.parametrize("positions", ["learned", "none"])
def test_forward_is_the_pass_in_numpy(choices, positions):
    model = built(choices, positions=positions)
    attending = {"first": [1], "last": [4], "2 3": [2, 3]}.get(
        choices.get("attention"), [1, 2, 3, 4]
    )
    source, target = batch()
    found = model.states(source, target)
    weights = model.attention(source, target)
    assert len(weights.cross) == len(attending)
    for row, (source_length, target_length) in enumerate(LENGTHS):
        pair = source[row, :source_length], target[row, :target_length]
        expected, recorded = numpy_states(model, *pair, attending)
        ours = found[row, :target_length].detach().numpy()
        np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12)
        for layer, shares in zip(weights.cross, recorded, strict=True):
            part = layer[row, 0, :target_length, :source_length].detach().numpy()
            np.testing.assert_allclose(part, shares, rtol=1e-9, atol=1e-12)
            assert not layer[row, 0, :, source_length:].any()


@pytest.mark.parametrize("choices", CHOICES.values(), ids=CHOICES)
def test_steps_equal_forward(choices):
    model = built(choices).float()
    source, target = batch()
    weights = model.attention(source, target)
    state, steps = model.start(model.encode(source)), []
    for place in range(target.size(1)):
        out, state = model.step(state, target[:, place])
        steps.append(out)
        mean = torch.stack(weights.cross).mean(0)[:, 0, place]  # (batch, source)
        real = target[:, place] != 0
        torch.testing.assert_close(state.attention[real], mean[real])
        assert state.length == place + 1
    real = target != 0
    steps, whole = torch.stack(steps, 1)[real], model.states(source, target)[real]
    # in single precision, and another processor adds in another order
    torch.testing.assert_close(steps, whole, rtol=1e-5, atol=1e-4)


def test_rows_are_repeated_dropped_and_reordered():
    model = built()
    source, target = batch([(3, 4), (5, 4)])
    state = model.start(model.encode(source))
    _, state = model.step(state, target[:, 0])
    # two hypotheses of the second sentence alone, whose tokens differ from now on
    state = state.select(torch.tensor([1, 1]), torch.tensor([1]))
    assert state.sentences == 1
    tokens = torch.tensor([5, 6])
    out, state = model.step(state, tokens)
    out, state = model.step(state.select(torch.tensor([1, 0])), torch.tensor([7, 8]))
    for row, (second, third) in enumerate([(6, 7), (5, 8)]):
        known = torch.tensor([[2, second, third]])
        torch.testing.assert_close(out[row], model.states(source[1:, :5], known)[0, 2])


@pytest.mark.parametrize("unpadded", [True, False])
def test_a_sentence_does_not_depend_on_its_batch(unpadded, monkeypatch):
    """In value and in gradient; with padding removed, as on a processor, and with padded rows."""
    if not unpadded:
        monkeypatch.setattr(convs2s, "unpad", lambda x, real, keys: (x, None))
    model = built().float()
    source, target = batch()

    def gradients(pairs):
        model.zero_grad()
        outs = []
        for source, target in pairs:
            out = model.states(source, target)[target != 0]
            out.square().sum().backward()
            outs.append(out.detach())
        return torch.cat(outs), [
            weight.grad.clone() for weight in model.parameters() if weight.grad is not None
        ]

    single = [
        (source[row : row + 1, :length], target[row : row + 1, :other])
        for row, (length, other) in enumerate(LENGTHS)
    ]
    out, together = gradients([(source, target)])
    alone_out, alone = gradients(single)
    torch.testing.assert_close(out, alone_out)
    for ours, other in zip(together, alone, strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-3, atol=1e-4)


def test_the_gradient_of_the_encoder_is_scaled_by_the_number_of_attentions():
    source, target = batch()
    scaled, found = built(), {}
    for scale in (1.0, scaled.encoder.wiring.gradient_scale):
        object.__setattr__(scaled.encoder.wiring, "gradient_scale", scale)
        scaled.zero_grad()
        scaled.states(source, target).square().sum().backward()
        found[scale] = scaled.encoder.fc2.weight.grad.clone()
    (_, plain), (scale, ours) = found.items()
    assert scale == 1 / 8
    torch.testing.assert_close(ours, plain / 8)


def test_first_weights_are_those_of_fairseq():
    config = ModelConfig(
        encoder="convs2s",
        decoder="convs2s",
        d_model=256,
        dropout=0.2,
        positions="learned",
        convs2s={"encoder_layers": "(128,3) (256,3)", "decoder_layers": "(256,3)"},
    )
    model = build_model(config, 2000, 2000, max_length=512)
    initialize(model, 1)
    deviations = {
        "embed_source.weight": 0.1,
        "source_positions.weight": 0.1,
        "target_positions.weight": 0.1,
        "encoder.fc1.weight": (0.8 / 256) ** 0.5,
        "encoder.projections.1.weight": (1 / 128) ** 0.5,
        "encoder.convolutions.1.weight": (4 * 0.8 / (3 * 128)) ** 0.5,
        "encoder.fc2.weight": (1 / 256) ** 0.5,
        "decoder.attention.0.in_proj.weight": (1 / 256) ** 0.5,
        "decoder.attention.0.out_proj.weight": (1 / 256) ** 0.5,
    }
    weights = dict(model.named_parameters())
    for name, deviation in deviations.items():
        assert float(weights[name].detach().std()) == pytest.approx(deviation, rel=0.02), name
    norms = weights["encoder.fc2.weight"].flatten(1).norm(dim=1)
    torch.testing.assert_close(weights["encoder.fc2.gain"], norms)
    assert not weights["encoder.fc2.bias"].any()


def test_dropout_acts_in_training_alone():
    model = built(dropout=0.5).train()
    source, target = batch()
    assert not torch.equal(model.states(source, target), model.states(source, target))
    model.eval()
    torch.testing.assert_close(model.states(source, target), model.states(source, target))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: convs2s.ConvS2SWiring(8, ()), "`layers` must be at least 1"),
        (
            lambda: convs2s.ConvS2SWiring("8", ()),
            "`d_model` of ConvS2SWiring must be a whole number",
        ),
    ],
)
def test_wrong_choices_are_named(build, words):
    jaxtyping.config.update("jaxtyping_disable", True)  # a user has no such checks
    with pytest.raises(HeedfulError, match=words):
        build()
