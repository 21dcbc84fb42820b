"""What a parser's decoder is given of the next word."""

import pytest
import torch

from heedful.model.flops import RowLengths
from heedful.model.halves import Memory
from heedful.model.inference import optimize_for_inference
from heedful.model.initialize import initialize
from heedful.tasks.parsing.next_word import NextWord
from tests.support.models import FAMILIES, small

# source: 10 and more begin a word. target: 4, 5 write words; others are brackets
BEGINS = torch.arange(20) >= 10
WRITES = (torch.arange(20) == 4) | (torch.arange(20) == 5)
SOURCE = torch.tensor([[10, 4, 11, 12, 5, 6, 13, 3], [14, 5, 15, 3, 0, 0, 0, 0]])
FIRST = [[0, 2, 3, 6, 7], [0, 2, 3]]  # of each word, and the end
TARGET = torch.tensor([[2, 6, 8, 4, 4, 9, 5, 6, 4, 7, 7, 3], [2, 6, 8, 5, 9, 6, 8, 4, 9, 7, 7, 3]])


def model_with(**changes):
    model = small(tie_embeddings="none", **changes)
    model.read_with("next_word", NextWord(model.encoder.width, 16, BEGINS, WRITES))
    initialize(model, 1)
    return model.eval()


@torch.no_grad()
def test_the_word_is_the_one_after_those_written():
    layer = NextWord(8, 6, BEGINS, WRITES)
    states = torch.randn(2, 8, 8, generator=torch.Generator().manual_seed(1))
    memory = layer.remember(Memory(states, SOURCE != 0), SOURCE, 0)
    found = layer.read(torch.zeros(*TARGET.shape, 6), memory, TARGET)
    for row in range(2):
        written = 0
        for place, token in enumerate(TARGET[row].tolist()):
            written += token in (4, 5)
            word = FIRST[row][min(written, len(FIRST[row]) - 1)]
            expected = states[row, word] @ layer.projection.weight.T
            torch.testing.assert_close(found[row, place], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_steps_give_what_a_known_target_gives(family):
    model = model_with(**FAMILIES[family])
    states = model.states(SOURCE, TARGET)
    without = small(tie_embeddings="none", **FAMILIES[family])
    without.load_state_dict(model.state_dict(), strict=False)
    assert not states.allclose(without.states(SOURCE, TARGET))
    state = model.start(model.encode(SOURCE))
    for place in range(TARGET.size(1)):
        # three hypotheses for each sentence, of which one goes on
        hypotheses = TARGET[:, place].repeat_interleave(1 if place == 0 else 3)
        out, state = model.step(state, hypotheses)
        out = out.view(2, -1, 16)
        torch.testing.assert_close(out, states[:, place, None].expand_as(out), atol=1e-5, rtol=1e-5)
        rows = torch.tensor([0, 0, 0, 1, 1, 1]) if place == 0 else torch.tensor([1, 0, 2, 5, 3, 4])
        state = state.select(rows)
    assert (state.sentences, state.length) == (2, TARGET.size(1))
    second = state.select(torch.tensor([3, 4, 5]), torch.tensor([1]))
    assert second.written.tolist() == [2, 2, 2]


@torch.no_grad()
def test_a_sentence_does_not_depend_on_its_batch():
    model = model_with()
    together = model.states(SOURCE, TARGET)[1]
    alone = model.states(SOURCE[1:, :4], TARGET[1:])[0]
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_a_model_in_8_bits_reads_the_same_words():
    plain, rounded = model_with(), optimize_for_inference(model_with(), "int8")
    states = [model.start(model.encode(SOURCE)) for model in (plain, rounded)]
    for place in range(TARGET.size(1)):
        outs = []
        for number, model in enumerate((plain, rounded)):
            out, states[number] = model.step(states[number], TARGET[:, place])
            outs.append(out)
        assert (outs[0] - outs[1]).norm() < 0.05 * outs[0].norm()


def test_every_weight_has_a_gradient():
    model = model_with()
    model.states(SOURCE, TARGET).sum().backward()
    assert model.next_word.projection.weight.grad.abs().sum(dim=1).min() > 0


def test_operations_are_counted():
    assert model_with().next_word.flops(RowLengths.padded([5, 3])) == 2 * 16 * 16 * 10
