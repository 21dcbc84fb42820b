"""Measuring whether attention is used."""

import math
from dataclasses import replace

import pytest
import torch

from heedful.data.batching import Collator
from heedful.model.contracts import DecoderInput
from heedful.training.health.attention_use import AttentionUse, HeldOutSample
from tests.support.models import FAMILIES, small

SOURCES = [[4, 5, 6, 7, 8, 9], [9, 8, 7, 6, 5, 4], [5, 7, 9, 4]]
TARGETS = [[4, 5, 6, 7, 8], [9, 7, 5], [6, 6, 6, 4, 5, 9]]
BATCH = Collator(0, 2, 3).batch(SOURCES, TARGETS)
CHECK = AttentionUse()
ATTENDING = [name for name in FAMILIES if name != "bytenet"]


def measured(model):
    return CHECK.measure(HeldOutSample(model.eval(), (BATCH,)))


def mean_loss(model, batch):
    """The mean negative log-probability of a target token, without this package's own functions."""
    real = batch.target_out != 0
    scores = model.log_probabilities(model.states(batch.source, batch.target_in)[real])
    return -float(scores.gather(1, batch.target_out[real].unsqueeze(1)).mean())


@pytest.mark.parametrize("family", ATTENDING)
def test_the_nats_of_uniform_attention_are_those_of_even_weights(family):
    model = small(**FAMILIES[family])
    nats = measured(model)["nats_of_uniform"]
    with torch.inference_mode():
        before = mean_loss(model, BATCH)
        make_even(model)
        assert mean_loss(model, BATCH) - before == pytest.approx(nats, abs=2e-5)
    even = measured(model)
    assert even["nats_of_uniform"] == pytest.approx(0.0, abs=1e-6)
    # of sentences of 7, 7 and 5 tokens with 6, 4 and 7 targets
    entropy = (10 * math.log(7) + 7 * math.log(5)) / 17
    assert even["entropy"] == pytest.approx(entropy, abs=1e-5)


def make_even(model):
    """Make all queries or all keys nothing, whatever a family calls them: scores are equal."""
    encode = model.encode

    def encode_without_keys(*arguments):
        memory = encode(*arguments)
        return memory if memory.keys is None else replace(memory, keys=0 * memory.keys)

    model.encode = encode_without_keys
    for name, part in model.decoder.named_modules():
        if name.endswith("cross_attention"):
            queries = part.widths[0]
            part.qkv_proj.weight[:queries] = 0.0
            part.qkv_proj.bias[:queries] = 0.0
        elif name == "attention" and hasattr(part, "query_proj"):
            for weight in part.parameters():  # a score without a projection of its queries, too
                weight.zero_()


def test_the_nats_of_another_source_are_those_of_the_neighbor():
    model = small()
    nats = measured(model)["nats_of_other_source"]
    others = [SOURCES[2], SOURCES[0], SOURCES[1]]
    misled = Collator(0, 2, 3).batch(others, TARGETS)
    with torch.inference_mode():
        expected = mean_loss(model, misled) - mean_loss(model, BATCH)
    assert nats == pytest.approx(expected, abs=2e-5)


def look_at(model, place, monkeypatch):
    """Let a recurrent decoder look at a place of the source, given the target's place."""

    def scores(query, keys, _):
        queries = range(query.size(1))
        favored = torch.full((len(query), query.size(1), keys.size(1)), -30.0)
        for j in queries:
            favored[:, j, place(j)] = 0.0
        return favored

    monkeypatch.setattr(model.decoder.attention, "_scores", scores)


@pytest.mark.family("recurrent")
def test_a_decoder_that_looks_at_the_first_place_is_warned_of(monkeypatch):
    model = small(**FAMILIES["recurrent"])
    look_at(model, lambda _: 0, monkeypatch)
    figures = measured(model)
    assert figures["first"] == 1.0 and figures["last"] == 0.0
    assert figures["diagonal"] == 0.0 and figures["entropy"] < 1e-6
    warning = CHECK.warning(figures)
    assert "100% of the target tokens attend most to the first source position" in warning


def test_healthy_figures_bring_no_warning_and_a_summary():
    figures = {"layer": 2.0, "entropy": 1.2, "first": 0.1, "last": 0.3, "diagonal": 0.8}
    figures |= {"nats_of_uniform": 1.25, "nats_of_other_source": 3.5}
    assert CHECK.warning(figures) is None
    assert CHECK.summary(figures) == (
        "layer 2: entropy 1.20, 10% of the largest weights at the first position and 30% at "
        "the last, correlation with the diagonal +0.80; the loss would rise by 1.25 nats per "
        "token with uniform attention, and by 3.50 with another sentence's source"
    )


def test_attention_that_costs_nothing_is_warned_of():
    warning = CHECK.warning({"nats_of_uniform": 0.01})
    assert "raise the loss by only 0.01 nats" in warning
    assert "a Transformer may only need more steps" in warning


@pytest.mark.family("recurrent")
def test_a_decoder_whose_input_reads_the_source_needs_no_attention():
    class ReadsTheFirstState(DecoderInput, torch.nn.Module):
        def read(self, x, memory, target_in):
            return x + memory.states[:, :1, :1]

    model = small(**FAMILIES["recurrent"])
    model.read_with("first_state", ReadsTheFirstState())
    with torch.inference_mode():
        make_even(model)
    figures = measured(model)
    assert figures["source_input"] == 1.0
    assert figures["nats_of_uniform"] < 0.1
    assert CHECK.warning(figures) is None
    assert CHECK.warning(figures | {"source_input": 0.0}) is not None
    assert CHECK.summary(figures).endswith("the decoder's input contains states of the source, too")
    assert "source_input" not in measured(small())


def test_short_sentences_have_losses_alone():
    batch = Collator(0, 2, 3).batch([[4, 5], [5, 4]], [[4], [5]])
    figures = CHECK.measure(HeldOutSample(small().eval(), (batch,)))
    assert set(figures) == {"nats_of_uniform", "nats_of_other_source"}


@pytest.mark.family("bytenet")
def test_a_model_without_attention_is_not_measured():
    assert measured(small(**FAMILIES["bytenet"])) is None


@pytest.mark.family("pooled")
def test_states_that_are_alike_by_design_are_not_measured():
    assert measured(small(encoder="average")) is None
