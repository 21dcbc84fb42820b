"""Recurrent decoders: a known target gives the states of a search, for every wiring."""

import itertools
import random

import pytest
import torch

from heedful.config.model import ModelConfig
from heedful.errors import SettingError
from heedful.families.build import build_model
from heedful.families.recurrent.config import RecurrentConfig
from heedful.model.initialize import initialize
from tests.support.models import batch

FAMILIES = [("recurrent", "recurrent"), ("transformer", "recurrent"), ("recurrent", "transformer")]
CHOICES = {
    "cell": ["lstm", "gru", "rnn"],
    "direction": ["forward", "bidirectional", "first-bidirectional", "interleaved"],
    "reverse_source": [False, True],
    "projection_size": [None, 8],
    "residual_from": [None, 1, 2, 3],
    "fast_forward": [False, True],
    "score": ["none", "dot", "general", "scaled", "additive", "normed-additive", "product"],
    "query": ["current", "previous"],
    "feed": ["none", "context", "readout"],
    "feed_layers": ["first", "all"],
    "readout": ["state", "state-context", "attentional", "maxout"],
    "start": ["zero", "mean", "bridge", "backward", "last", "final"],
}


def build(encoder, decoder, layers=2, seed=1, **recurrent):
    """A small model; its encoder's states are as wide as the decoder's."""
    config = ModelConfig(
        encoder=encoder,
        decoder=decoder,
        d_model=16,
        d_ff=32,
        heads=2,
        encoder_layers=layers,
        decoder_layers=layers,
        tie_embeddings="none",
        recurrent=RecurrentConfig(**recurrent),
    )
    model = build_model(config, 20, 20, max_length=12)
    initialize(model, seed)
    return model.eval()


def by_steps(model, source, target):
    """States of a target token by token, as a search computes them."""
    state, states = model.start(model.encode(source)), []
    for tokens in target.unbind(1):
        out, state = model.step(state, tokens)
        states.append(out)
    return torch.stack(states, 1)


def drawn(count):
    """So many wirings that the settings allow, in which every choice stands beside many others."""
    chance, found = random.Random(1), []
    while len(found) < count:
        choices = {name: chance.choice(values) for name, values in CHOICES.items()}
        families, layers = chance.choice(FAMILIES), chance.randint(1, 3)
        try:
            found.append((families, layers, choices, build(*families, layers, **choices)))
        except SettingError as error:
            assert "`model." in str(error)
    return found


def test_a_known_target_gives_the_states_of_a_search():
    source, target = batch()
    wirings = drawn(50)
    for name, values in CHOICES.items():
        assert {choices[name] for _, _, choices, _ in wirings} == {*values}
    for families, layers, choices, model in wirings:
        with torch.no_grad():
            whole, stepped = model.states(source, target), by_steps(model, source, target)
        torch.testing.assert_close(
            stepped, whole, atol=1e-5, rtol=1e-5, msg=f"{families}, {layers} layers, {choices}"
        )


# Each choice once in a wiring that surely can be built, so that none is refused by mistake.
BASE = {"hidden_size": 8, "decoder_hidden_size": 16}
SURE = [
    *({"cell": cell} for cell in CHOICES["cell"]),
    *({"direction": d, "hidden_size": 8} for d in CHOICES["direction"]),
    *({"score": s} for s in CHOICES["score"][1:]),
    {"score": "none", "feed": "none", "readout": "state", "query": "current"},
    {"reverse_source": True, "direction": "forward", "encoder_hidden_size": 16, "start": "final"},
    {"query": "previous", "feed": "context", "readout": "maxout", "start": "backward"},
    {"query": "previous", "feed": "context", "readout": "state", "feed_layers": "all"},
    {"feed": "context", "readout": "state-context"},
    {"feed": "none"},
    {"projection_size": 8, "encoder_hidden_size": 16, "start": "final"},
    {"residual_from": 1, "decoder_hidden_size": 16, "direction": "bidirectional"},
    {"fast_forward": True, "direction": "interleaved"},
    {"fast_forward": True, "direction": "forward"},
    {"score": "none", "feed": "readout", "readout": "maxout"},
    {"score": "none", "feed": "readout", "readout": "attentional"},
    *({"start": start} for start in ("zero", "mean", "bridge", "backward")),
    {"start": "last", "encoder_hidden_size": 16},
    {"start": "last", "encoder_hidden_size": 8},
]


@pytest.mark.parametrize("choices", SURE, ids=str)
def test_every_choice_can_be_built_and_hypotheses_are_selected(choices):
    choices = {**BASE, **choices}
    if choices.get("score") == "dot":
        choices["decoder_hidden_size"] = 16
    model = build("recurrent", "recurrent", **choices)
    source, target = batch()
    with torch.no_grad():
        whole = model.states(source, target)
        state = model.start(model.encode(source))
        # two hypotheses a sentence, the second with other tokens, then back to the first
        out, state = model.step(state, target[:, 0])
        state = state.select(torch.tensor([0, 0, 1, 1, 2, 2]))
        tokens = torch.stack([target[:, 1], target[:, 2]], 1).flatten()
        out, state = model.step(state, tokens)
        torch.testing.assert_close(out[::2], whole[:, 1], atol=1e-5, rtol=1e-5)
        # only the last sentence stays
        state = state.select(torch.tensor([4]), torch.tensor([2]))
        out, state = model.step(state, target[2:, 2])
        torch.testing.assert_close(out, whole[2:, 2], atol=1e-5, rtol=1e-5)
        assert state.length == 3


@pytest.mark.parametrize("choices", SURE, ids=str)
def test_a_sentence_does_not_depend_on_its_batch(choices):
    model = build("recurrent", "recurrent", **{**BASE, **choices})
    source, target = batch()
    with torch.no_grad():
        whole = model.states(source, target)
        for row, length in enumerate([7, 4, 2]):
            alone = model.states(source[row : row + 1, :length], target[row : row + 1])
            torch.testing.assert_close(alone[0], whole[row], atol=1e-5, rtol=1e-5)


def test_attention_is_recorded_by_every_decoder_that_attends():
    source, target = batch()
    for feed, query in itertools.product(("none", "context", "readout"), CHOICES["query"]):
        readout = "state-context" if feed != "readout" else "attentional"
        model = build("recurrent", "recurrent", feed=feed, query=query, readout=readout, **BASE)
        weights = model.attention(source, target)
        assert (weights.encoder, weights.decoder) == ([], [])
        (cross,) = weights.cross
        assert cross.shape == (3, 1, 5, 7)
        torch.testing.assert_close(cross.sum(-1), torch.ones(3, 1, 5))
        assert not cross[2, :, :, 2:].any()
    silent = build("recurrent", "recurrent", score="none", feed="none", readout="state", **BASE)
    assert silent.attention(source, target).cross == []
