"""Mixtures from settings, inside models of every family that has them."""

import pytest
import torch

from heedful.config.model import ModelConfig
from heedful.families.build import build_model
from heedful.families.experts.build import build_networks
from heedful.model.inference import optimize_for_inference
from heedful.model.initialize import initialize
from heedful.model.weights import named_weights
from tests.support.models import draw_gates, networks

SMALL = {"d_model": 16, "d_ff": 24, "heads": 2, "encoder_layers": 2, "decoder_layers": 2}
GATINGS = [
    {"count": 4},
    {"count": 4, "gating": "balanced"},
    {"count": 6, "groups": 3},
    {"count": 6, "groups": 3, "gating": "balanced"},
    {"count": 4, "d_ff": 8, "encoder_layers": "2", "decoder_layers": "1", "sigmoid": True},
]

BOTTOM = {"query": "previous", "feed": "context", "readout": "state", "residual_from": 1}
WIRINGS = [
    {"direction": "forward", "hidden_size": 20, "projection_size": 16, "start": "zero", **BOTTOM},
    {"direction": "forward", **BOTTOM, "readout": "state-context", "score": "product"},
    {"feed": "none", "residual_from": 2},
    {"score": "none", "feed": "none", "readout": "state", "cell": "gru"},
]

MARKED = [pytest.param(wiring, marks=pytest.mark.family("recurrent")) for wiring in WIRINGS]


def recurrent(wiring, seed=1, **experts):
    """A recurrent model of three layers with a mixture on top of the first two."""
    config = ModelConfig(
        encoder="recurrent",
        decoder="recurrent",
        d_model=16,
        encoder_layers=3,
        decoder_layers=3,
        tie_embeddings="none",
        dropout=0.0,
        recurrent=wiring,
        experts={"count": 4, "d_ff": 12, "encoder_layers": "1 2", "decoder_layers": "1 2"}
        | experts,
    )
    return with_drawn_gates(build_model(config, 20, 20, max_length=12), seed)


def built(experts, seed=1, **settings):
    config = ModelConfig(**{**SMALL, "dropout": 0.0, **settings}, experts=experts)
    return with_drawn_gates(build_model(config, 20, 20, max_length=12), seed)


def with_drawn_gates(model, seed):
    """Draw all weights, in evaluation mode."""
    initialize(model.eval(), seed)
    draw_gates(model, seed)
    return model


def batch():
    source = torch.tensor([[4, 5, 6, 3], [7, 8, 3, 0]])
    target = torch.tensor([[2, 9, 10, 11, 12], [2, 13, 14, 0, 0]])
    return source, target


def test_sizes_come_from_the_settings():
    config = ModelConfig(**SMALL, experts={"count": 4, "encoder_layers": "2"})
    encoder, decoder = build_networks(config, "encoder"), build_networks(config, "decoder")
    assert encoder.layers == (2,)
    assert decoder.layers == (1, 2)
    assert (encoder.build(16).config.d_model, encoder.build(12).config.d_model) == (16, 12)
    assert encoder.build(16).config.d_ff == 24
    assert build_networks(ModelConfig(**SMALL), "encoder") == (None, ())
    names = list(networks(built({"count": 4, "encoder_layers": "2"})))
    assert names == [
        "encoder.layers.1.feed_forward",
        "decoder.layers.0.feed_forward",
        "decoder.layers.1.feed_forward",
    ]


@pytest.mark.parametrize("experts", GATINGS)
def test_steps_equal_the_forward_pass(experts):
    check_steps(built(experts))


@pytest.mark.family("recurrent")
@pytest.mark.parametrize("gating", ["noisy", "balanced"])
@pytest.mark.parametrize("wiring", WIRINGS, ids=str)
def test_steps_equal_the_forward_pass_of_recurrent_layers(wiring, gating):
    model = recurrent(wiring, gating=gating, sigmoid=True)
    assert len(networks(model)) == 4
    check_steps(model)


def check_steps(model):
    """Compare a known target with the steps of a search, and with the loop that trains."""
    source, target = batch()
    torch.testing.assert_close(model.states(source, target), model.states(source, target).detach())
    with torch.no_grad():
        whole = model.states(source, target)
        state = model.start(model.encode(source))
        for place in range(target.size(1)):
            states, state = model.step(state, target[:, place])
            real = target[:, place] != 0
            torch.testing.assert_close(states[real], whole[:, place][real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("experts", GATINGS)
def test_a_sentence_gets_the_same_alone(experts):
    model, (source, target) = built(experts), batch()
    with torch.no_grad():
        whole = model.states(source, target)
        alone = model.states(source[1:, :3], target[1:, :3])
    torch.testing.assert_close(alone, whole[1:, :3], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("experts", [*GATINGS, *MARKED], ids=str)
def test_padding_changes_nothing_in_training(experts):
    (source, target), found = batch(), []
    for more in (0, 5):
        model = built(experts) if "count" in experts else recurrent(experts, gating="balanced")
        model.train()
        wide = [torch.nn.functional.pad(ids, (0, more)) for ids in (source, target)]
        torch.manual_seed(0)
        states = model.states(*wide)[:, : target.size(1)]
        found.append((states[target != 0], model.penalty()))
    torch.testing.assert_close(found[0][0], found[1][0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found[0][1], found[1][1], atol=1e-5, rtol=1e-5)


def test_the_penalty_is_the_sum_of_all_mixtures_and_read_once():
    model, (source, target) = built({"count": 4}).train(), batch()
    model.states(source, target)
    penalties = [float(mixture.penalty.detach()) for mixture in networks(model).values()]
    assert len(penalties) == 4 and min(penalties) > 0
    assert float(model.penalty().detach()) == pytest.approx(sum(penalties))
    assert model.penalty() is None
    model.eval()(source, target)
    assert model.penalty() is None


def test_the_log_has_the_spread_of_the_load():
    model = built({"count": 4, "gating": "balanced"}).train()
    assert model.log_figures()["expert_spread"] == 0
    loads = [mixture.running_load for mixture in networks(model).values()]
    for load in loads:
        load.copy_(torch.tensor([0.2, 0.4, 0.6, 0.8]))
    figures = model.log_figures()
    assert figures["expert_spread"] == pytest.approx(0.05**0.5 / 0.5)
    assert figures["unserved"] == 0
    assert built({"count": None}).log_figures() == {}


def test_a_checkpoint_stores_the_load():
    model = built({"count": 4, "encoder_layers": "none", "decoder_layers": "2"})
    extra = named_weights(model).keys() - dict(model.named_parameters()).keys()
    assert extra == {"decoder.layers.1.feed_forward.running_load"}


@pytest.mark.family("recurrent")
def test_a_mixture_between_recurrent_layers_is_its_equation():
    model = recurrent(WIRINGS[0], sigmoid=True)
    stack, x = model.decoder, torch.randn(5, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        mixed = torch.sigmoid(sum_of_experts(stack.mixtures["2"], x))
        torch.testing.assert_close(stack.mix(2, x), x + mixed)
    assert stack.mix(3, x) is x


def sum_of_experts(mixture, x):
    """Weigh the experts by a softmax over the two largest logits, token by token."""
    rows = []
    for state in x:
        best = (mixture.gate.weight @ state).topk(2)
        experts = [mixture.experts[expert](state) for expert in best.indices.tolist()]
        rows.append(best.values.softmax(0) @ torch.stack(experts))
    return torch.stack(rows)


@pytest.mark.parametrize("kind", ["packed", "int8"])
@pytest.mark.parametrize("experts", GATINGS)
def test_inference_computes_the_same(kind, experts):
    (source, target), plain = batch(), built(experts, d_model=32, d_ff=64)
    with torch.no_grad():
        wanted = plain.log_probabilities(plain.states(source, target))
        model = optimize_for_inference(built(experts, d_model=32, d_ff=64), kind)
        found = model.log_probabilities(model.states(source, target))
    real = target != 0
    apart = (wanted - found)[real].abs().amax(dim=-1)  # (tokens,)
    if kind == "packed":
        assert apart.max() < 1e-5
    else:  # rounded, a token may go to another expert where two are almost equal
        assert apart.quantile(0.75) < 0.2
