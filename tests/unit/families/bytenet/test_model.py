"""ByteNet: known targets and searches, padding, the unfolding, and independent forward passes."""

import random

import numpy as np
import pytest
import torch

from heedful.config.model import ModelConfig
from heedful.families.build import build_model
from heedful.families.bytenet.config import ByteNetConfig
from heedful.families.bytenet.model import ByteNetDecoder, ByteNetEncoder, ByteNetState
from heedful.model.initialize import initialize
from tests.support.families import are_here
from tests.support.models import batch

FAMILIES = [
    pair
    for pair in (
        ("bytenet", "bytenet"),
        ("transformer", "bytenet"),
        ("recurrent", "bytenet"),
        ("bytenet", "transformer"),
        ("bytenet", "recurrent"),
        ("convs2s", "bytenet"),
        ("bytenet", "convs2s"),
    )
    if are_here(dict(zip(("encoder", "decoder"), pair, strict=True)))
]
CHOICES = {
    "channels": [None, 5],
    "encoder_kernel": [1, 3, 5],
    "decoder_kernel": [1, 2, 3],
    "max_dilation": [1, 2, 4],
    "join": ["concatenated", "summed"],
    "unfolding_factor": [1.0, 1.2, 2.0],
    "unfolding_offset": [0, 3],
    "unfolding_padding": ["learned", "zero"],
}
BOTH = ("bytenet", "bytenet")


def build(encoder="bytenet", decoder="bytenet", layers=2, **bytenet):
    """A small model; its encoder's states are as wide as its embeddings, for each family."""
    starts = {"start": "mean"} if decoder == "recurrent" else {}
    tables = {
        "convs2s": {"encoder_layers": "2x(8,3)", "decoder_layers": "2x(8,3)"},
        "recurrent": {"encoder_hidden_size": 8, **starts},
    }
    config = ModelConfig(
        encoder=encoder,
        decoder=decoder,
        d_model=16,
        d_ff=32,
        heads=2,
        encoder_layers=layers,
        decoder_layers=layers,
        tie_embeddings="none",
        bytenet=ByteNetConfig(**bytenet),
        **{name: table for name, table in tables.items() if name in (encoder, decoder)},
    )
    model = build_model(config, 20, 20, max_length=12)
    initialize(model, 1)
    return model.eval()


def by_steps(model, source, target):
    """States of a target token by token, as a search computes them."""
    state, states = model.start(model.encode(source)), []
    for tokens in target.unbind(1):
        out, state = model.step(state, tokens)
        states.append(out)
    return torch.stack(states, 1)


def long_target():
    """A batch whose targets are longer than the room of most sources."""
    source, _ = batch()
    return source, torch.randint(4, 20, (3, 17), generator=torch.Generator().manual_seed(3))


def test_a_known_target_gives_the_states_of_a_search():
    chance, seen = random.Random(2), {name: set() for name in CHOICES}
    for number in range(49):
        choices = {name: chance.choice(values) for name, values in CHOICES.items()}
        for name, value in choices.items():
            seen[name].add(value)
        families, layers = FAMILIES[number % len(FAMILIES)], chance.randint(1, 4)
        sides = zip(families, ("encoder", "decoder"), strict=True)
        if {choices[f"{side}_kernel"] for family, side in sides if family == "bytenet"} == {1}:
            del choices["max_dilation"]  # refused, for it does nothing
        model = build(*families, layers, **choices)
        source, target = chance.choice([batch, long_target])()
        if families[1] == "transformer":
            target = target[:, :12]
        with torch.no_grad():
            whole, stepped = model.states(source, target), by_steps(model, source, target)
        torch.testing.assert_close(
            stepped, whole, atol=1e-5, rtol=1e-5, msg=f"{families}, {layers} blocks, {choices}"
        )
    assert seen == {name: {*values} for name, values in CHOICES.items()}


@pytest.mark.parametrize("families", FAMILIES, ids=str)
def test_a_sentence_does_not_depend_on_its_batch(families):
    model = build(*families, layers=4)
    source, target = batch()
    with torch.no_grad():
        whole = model.states(source, target)
        for row, length in enumerate([7, 4, 2]):
            alone = model.states(source[row : row + 1, :length], target[row : row + 1])
            torch.testing.assert_close(alone[0], whole[row], atol=1e-6, rtol=1e-6)


def test_hypotheses_are_repeated_dropped_and_reordered():
    model = build(layers=3)
    source, target = batch()
    with torch.no_grad():
        whole = model.states(source, target)
        _, state = model.step(model.start(model.encode(source)), target[:, 0])
        # two hypotheses a sentence, the second with other tokens, then back to the first
        state = state.select(torch.tensor([0, 0, 1, 1, 2, 2]))
        tokens = torch.stack([target[:, 1], target[:, 2]], 1).flatten()
        out, state = model.step(state, tokens)
        torch.testing.assert_close(out[::2], whole[:, 1], atol=1e-5, rtol=1e-5)
        # the last sentence alone stays, then in two equal rows
        state = state.select(torch.tensor([4, 4]), torch.tensor([2]))
        assert (state.sentences, state.length) == (1, 2)
        out, state = model.step(state, target[2, 2].repeat(2))
        torch.testing.assert_close(out, whole[2:, 2].repeat(2, 1), atol=1e-5, rtol=1e-5)


def test_the_state_has_the_last_inputs_of_each_block_and_the_columns():
    model = build(layers=3, max_dilation=4, decoder_kernel=3, unfolding_factor=1.5)
    source, _ = batch()
    state = model.start(model.encode(source))
    assert [tuple(past.shape) for past in state.pasts] == [(3, 2, 8), (3, 4, 8), (3, 8, 8)]
    assert state.columns.shape == (3, 11, 16)  # of 7 subwords, 1.5 columns each


# ---------------------------------------------------------------- the unfolding


def test_the_encoder_reads_the_padding_that_makes_room():
    """Columns beyond the source are not a constant: they know how the source ends."""
    model = build(layers=3, unfolding_factor=2.0)
    source, _ = batch()
    states = model.encode(source).states
    assert states.shape[1] == 14
    assert states[0, 7:].std(0).max() > 1e-3
    assert states[1, 4:8].any() and not states[1, 8:].any()


def test_an_encoder_of_another_family_is_unfolded_by_the_decoder():
    model = build("transformer", "bytenet", unfolding_factor=2.0)
    source, _ = batch()
    memory = model.encode(source)
    assert memory.states.shape[1] == 7
    columns = model.start(memory).columns
    assert columns.shape[1] == 14
    padding = model.decoder.column_proj(model.decoder.unfolding.padding)
    torch.testing.assert_close(columns[1, 4:8], padding.expand(4, 16))
    assert not columns[1, 8:].any()


def test_beyond_its_room_the_decoder_reads_zeros():
    model = build(unfolding_factor=1.0)
    source, target = long_target()
    memory = model.encode(source)
    with torch.no_grad():
        whole = model.states(source, target)
        zeros = torch.zeros(3, 20, 16)
        zeros[:, :7] = memory.states
        longer = type(memory)(zeros, torch.ones(3, 1, 1, 20, dtype=torch.bool))
        state, states = model.start(longer), []
        for tokens in target.unbind(1):
            out, state = model.step(state, tokens)
            states.append(out)
    torch.testing.assert_close(torch.stack(states, 1), whole, atol=1e-5, rtol=1e-5)


def test_nothing_reads_padding():
    model = build(layers=4)
    table = model.embed_source.weight
    source, target = batch()
    model.states(source, target)[1:].sum().backward()
    assert table.grad[model.padding].abs().sum() == 0


# ---------------------------------------------------------------- independent forward passes


def layer_norm(x, norm):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + norm.eps) * norm.weight.numpy() + norm.bias.numpy()


def relu(x):
    return np.maximum(x, 0)


def product(x, linear):
    return x @ linear.weight.numpy().T + (0 if linear.bias is None else linear.bias.numpy())


def numpy_block(x, block, causal):
    """A block on one sentence of shape (time, width), a position at a time."""
    inner = relu(
        layer_norm(product(relu(layer_norm(x, block.norm_in)), block.proj_in), block.norm_conv)
    )
    weight, bias = block.convolution.weight.numpy(), block.convolution.bias.numpy()
    kernel, dilation = weight.shape[1], block.convolution.dilation
    first = kernel - 1 if causal else (kernel - 1) // 2
    out = np.zeros_like(inner)
    for time in range(len(x)):
        out[time] = bias
        for tap in range(kernel):
            read = time + (tap - first) * dilation
            if 0 <= read < len(x):
                out[time] += weight[:, tap] @ inner[read]
    return x + product(relu(layer_norm(out, block.norm_out)), block.proj_out)


def numpy_bytenet(model, source, target, room):
    """States of one sentence without padding."""
    encoder, decoder = model.encoder, model.decoder
    x = model.embed_source.weight.numpy()[source]
    x = np.concatenate([x, np.tile(encoder.unfolding.padding.numpy(), (room - len(x), 1))])
    for block in encoder.blocks:
        x = numpy_block(x, block, causal=False)
    columns = np.zeros((max(room, len(target)), x.shape[1]))
    columns[:room] = x
    y = model.embed_target.weight.numpy()[target]
    y = product(columns[: len(target)], decoder.column_proj) + product(y, decoder.embedding_proj)
    for block in decoder.blocks:
        y = numpy_block(y, block, causal=True)
    return relu(product(y, decoder.final))


@pytest.mark.parametrize("texts", [batch, long_target])
def test_states_are_those_of_an_independent_forward_pass_in_numpy(texts):
    model = build(layers=4, max_dilation=4, encoder_kernel=5, unfolding_factor=1.2).double()
    source, target = texts()
    with torch.no_grad():
        for weight in model.parameters():  # livelier than fresh ones, biases and gains included
            weight += 0.3 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(5))
        found = model.states(source, target).numpy()
        for row, (length, room) in enumerate([(7, 9), (4, 5), (2, 3)]):
            expected = numpy_bytenet(model, source[row, :length], target[row], room)
            np.testing.assert_allclose(found[row], expected, atol=1e-9)


def test_first_weights_lie_within_glorot_s_bound():
    model = build(layers=3)
    for side in (model.encoder, model.decoder):
        for block in side.blocks:
            assert block.convolution.weight.abs().max() <= (6 / (8 + 3 * 8)) ** 0.5
            assert not block.convolution.bias.any() and not block.proj_in.bias.any()
    assert model.encoder.unfolding.padding.any()
    again = build(layers=3)
    for one, other in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


def test_its_parts_are_of_the_published_interface():
    model = build()
    source, _ = batch()
    assert isinstance(model.encoder, ByteNetEncoder) and isinstance(model.decoder, ByteNetDecoder)
    assert isinstance(model.start(model.encode(source)), ByteNetState)
