"""What a parser's decoder is given of words, against a plain stack."""

import pytest
import torch

from heedful.model.inference.optimize import optimize_for_inference
from heedful.model.initialise import initialise
from heedful.model.word_states import WordStates
from tests.support.models import FAMILIES, small

# source: 10 and more begin a word. target: 4, 5 write words; 6 (A, 7 )A, 8 (B, 9 )B
BEGINS = torch.arange(20) >= 10
KIND = torch.zeros(20, dtype=torch.long)
KIND[[6, 8]], KIND[[7, 9]] = 1, -1
WRITES = (torch.arange(20) == 4) | (torch.arange(20) == 5)
SOURCE = torch.tensor([[10, 4, 11, 12, 5, 6, 13, 3], [14, 5, 15, 3, 0, 0, 0, 0]])
FIRST = [[0, 2, 3, 6, 7], [0, 2, 3]]  # of each word, and the end
TARGET = torch.tensor([[2, 6, 8, 4, 4, 9, 5, 6, 4, 7, 7, 3], [2, 6, 8, 5, 9, 6, 8, 4, 9, 7, 7, 3]])


def words_read(tokens, first):
    """Places of the next word, the last one, and the open phrase's first one, by a stack."""
    found, stack, written = [], [], 0
    for token in tokens:
        if token in (4, 5):
            written += 1
        elif token in (6, 8):
            stack.append(written)
        elif token in (7, 9):
            stack.pop()
        numbers = (written, max(written - 1, 0), stack[-1] if stack else 0)
        found.append([first[min(number, len(first) - 1)] for number in numbers])
    return found


def model_with(span=True, **changes):
    model = small(tie_embeddings="none", **changes)
    model.word_states = WordStates(model.encoder.width, 16, BEGINS, WRITES, KIND, span)
    initialise(model, 1)
    return model.eval()


@pytest.mark.parametrize("span", [False, True])
@torch.no_grad()
def test_the_words_are_those_that_a_stack_finds(span):
    layer = WordStates(8, 6, BEGINS, WRITES, KIND, span)
    states = torch.randn(2, 8, 8, generator=torch.Generator().manual_seed(1))
    found = layer.read(layer.project(states, SOURCE, 0), TARGET)
    parts = layer.projection.weight.chunk(layer.parts)
    for row in range(2):
        read = words_read(TARGET[row].tolist(), FIRST[row])
        for place, words in enumerate(read):
            each = zip(words, parts, strict=False)
            expected = sum(states[row, word] @ part.T for word, part in each)
            torch.testing.assert_close(found[row, place], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("span", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_steps_give_what_a_known_target_gives(family, span):
    model = model_with(span, **FAMILIES[family])
    states = model(SOURCE, TARGET)
    without = small(tie_embeddings="none", **FAMILIES[family])
    without.load_state_dict(model.state_dict(), strict=False)
    assert not states.allclose(without(SOURCE, TARGET))
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
    assert second.tokens.equal(TARGET[1].expand(3, -1))


@torch.no_grad()
def test_a_sentence_does_not_depend_on_its_batch():
    model = model_with()
    together = model(SOURCE, TARGET)[1]
    alone = model(SOURCE[1:, :4], TARGET[1:])[0]
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
    model(SOURCE, TARGET).sum().backward()
    assert model.word_states.projection.weight.grad.abs().sum(dim=1).min() > 0


def test_operations_are_counted():
    assert model_with().word_states.flops() == 2 * 16 * 48
