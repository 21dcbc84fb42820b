import copy
import pickle

import jaxtyping
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import ArgumentError
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Encoder
from tests.support.models import SETTINGS, batch, small


@pytest.fixture(scope="module", params=SETTINGS)
def model(request):
    """Build a model of each kind for the tests of all kinds, which leave it as it is."""
    return small(**request.param)


def test_steps_equal_the_whole_target_at_once(model):
    source, target = batch()
    target[:, 0] = model.start_token
    with torch.no_grad():
        whole = model.states(source, target)
        state = model.start(model.encode(source))
        for position in range(target.size(1)):
            states, state = model.step(state, target[:, position])
            torch.testing.assert_close(states, whole[:, position], atol=1e-5, rtol=1e-4)


def test_padding_and_neighbors_change_nothing(model):
    source, target = batch()
    with torch.no_grad():
        together = model.states(source, target)
        alone = model.states(source[2:, :2], target[2:])
    torch.testing.assert_close(alone[0], together[2], atol=1e-5, rtol=1e-4)


def test_a_position_does_not_see_what_follows(model):
    source, target = batch()
    later = target.clone()
    later[:, 3:] = 9
    with torch.no_grad():
        torch.testing.assert_close(
            model.states(source, later)[:, :3], model.states(source, target)[:, :3]
        )


def test_without_its_mask_a_decoder_sees_what_it_must_predict_but_a_search_does_not():
    model, masked = small(causal_mask=False), small()
    source, target = batch()
    later, padded = target.clone(), target.clone()
    later[:, 3:] = 9
    padded[:, 4:] = 0
    with torch.no_grad():
        whole = model.states(source, target)
        assert (model.states(source, later)[:, :3] - whole[:, :3]).abs().max() > 0.01
        torch.testing.assert_close(
            model.states(source, padded)[:, :4], model.states(source, target[:, :4])
        )
        states = (one.start(one.encode(source)) for one in (model, masked))
        free, hidden = (
            one.step(state, target[:, 0])[0]
            for one, state in zip((model, masked), states, strict=True)
        )
    assert free.equal(hidden)  # the first position has nothing before it


def test_hypotheses_of_a_sentence_share_its_source():
    model = small()
    source, _ = batch()
    with torch.no_grad():
        state = model.start(model.encode(source))
        _, state = model.step(state, torch.full((3,), model.start_token))
        rows = torch.tensor([0, 0, 1, 1, 2, 2])
        tokens = torch.tensor([5, 6, 7, 8, 9, 10])
        states, _ = model.step(state.select(rows), tokens)
        for row in range(6):
            prefix = torch.tensor([[model.start_token, int(tokens[row])]])
            alone = model.states(source[row // 2 : row // 2 + 1], prefix)[0, 1]
            torch.testing.assert_close(states[row], alone, atol=1e-5, rtol=1e-4)


def test_finished_sentences_can_leave():
    model = small()
    source, _ = batch()
    with torch.no_grad():
        state = model.start(model.encode(source))
        _, state = model.step(state, torch.full((3,), model.start_token))
        keep = torch.tensor([0, 2])
        states, _ = model.step(state.select(keep, keep), torch.tensor([5, 9]))
        alone = model.states(source[2:, :2], torch.tensor([[model.start_token, 9]]))[0, 1]
    torch.testing.assert_close(states[1], alone, atol=1e-5, rtol=1e-4)


def test_attention_of_every_layer_and_head_on_request():
    model = small()
    source, target = batch()
    with torch.no_grad():
        weights = model.attention(source, target)
    assert [w.shape for w in weights.encoder] == [(3, 2, 7, 7)] * 2
    assert [w.shape for w in weights.decoder] == [(3, 2, 5, 5)] * 2
    assert [w.shape for w in weights.cross] == [(3, 2, 5, 7)] * 2
    assert weights.cross[0][2, :, :, 2:].abs().max() == 0  # padding
    for kind in (weights.encoder, weights.decoder, weights.cross):
        torch.testing.assert_close(kind[1].sum(-1), torch.ones_like(kind[1].sum(-1)))


def test_ids_outside_the_vocabulary_and_unequal_batches_are_refused():
    model, (source, target) = small(), batch()
    with pytest.raises(
        ArgumentError, match=r"must be from 0 to \d+, .* range from \d+ to 1,?000\."
    ):
        model(source.masked_fill(source == source.max(), 1000), target)
    jaxtyping.config.update("jaxtyping_disable", True)  # a user has no such checks
    with pytest.raises(ArgumentError, match="but have 3 and 2 rows"):
        model(source, target[:2])


def test_an_exported_program_takes_batches_of_other_sizes():
    jaxtyping.config.update("jaxtyping_disable", True)  # numbers of a traced program are no int
    model, (source, target) = small().eval(), batch()
    size, time = torch.export.Dim("size"), torch.export.Dim("time", max=256)
    shapes = ({0: size, 1: time}, {0: size})
    program = torch.export.export(model, (source, target), dynamic_shapes=shapes).module()
    wider = torch.cat([source, source])[:5], torch.cat([target, target])[:5]
    torch.testing.assert_close(program(*wider), model(*wider))


def test_tied_tables_are_one_tensor():
    model = small(tie_embeddings="all")
    assert model.embed_source is model.embed_target
    assert model.output.weight is model.embed_source.weight
    partly = small(tie_embeddings="output")
    assert partly.embed_source is not partly.embed_target
    assert partly.output.weight is partly.embed_target.weight
    apart = small(tie_embeddings="none")
    assert apart.output.weight is not apart.embed_target.weight


@pytest.mark.parametrize("tie", ["all", "output"])
def test_tied_tables_stay_one_tensor(tie):
    model = small(tie_embeddings=tie, output_bias=True)
    stored, (source, target) = model.state_dict(), batch()
    assert "output.weight" not in stored
    assigned = small(tie_embeddings=tie, output_bias=True)
    assigned.load_state_dict({name: x.clone() for name, x in stored.items()}, assign=True)
    empty = copy.deepcopy(model).to("meta").to_empty(device="cpu")
    empty.load_state_dict(stored)
    other = pickle.loads(pickle.dumps(model))
    for again in (assigned, empty, other, copy.deepcopy(model)):
        assert again.output.weight is again.embed_target.weight is not model.output.weight
        again.source_positions.table = model.source_positions.table  # no part of a state_dict
        again.target_positions.table = model.target_positions.table
        torch.testing.assert_close(
            again.project(again.states(source, target)), model.project(model.states(source, target))
        )
    larger = copy.deepcopy(model)
    larger.embed_target.weight = torch.nn.Parameter(torch.randn(20, 16))
    assert larger.output.weight is larger.embed_target.weight


def test_weights_of_the_output_come_first():
    """The norm of the gradients depends on the order to the last bit, and so does a resumed run."""
    names = [name for name, _ in small(tie_embeddings="none", output_bias=True).named_parameters()]
    assert names[:2] == ["output.weight", "output.bias"]


def test_pre_norm_ends_in_a_norm_and_post_norm_does_not():
    assert isinstance(small(norm="pre").encoder.norm, torch.nn.LayerNorm)
    assert isinstance(small(norm="post").encoder.norm, torch.nn.Identity)
    mixed = small(norm="pre", encoder_norm="pre-no-final")
    assert isinstance(mixed.encoder.norm, torch.nn.Identity)
    assert isinstance(mixed.decoder.norm, torch.nn.LayerNorm)


@settings(max_examples=10)
@given(st.integers(1, 600))
def test_texts_of_any_length_go_through(length):
    model = small(positions="learned")
    ids = torch.full((1, length), 5)
    with torch.no_grad():
        assert model.states(ids, ids[:, :3]).shape[0] == 1


def test_the_encoder_is_usable_alone():
    encoder = Encoder(LayerConfig(d_model=32, d_ff=64, heads=4, dropout=0.0), layers=2)
    assert encoder(torch.randn(2, 3, 32)).shape == (2, 3, 32)


def test_logits_are_states_times_the_table():
    model = small(output_bias=True)
    states = torch.randn(4, 16)
    table, bias = model.output.weight, model.output.bias
    torch.testing.assert_close(model.project(states), states @ table.T + bias)
