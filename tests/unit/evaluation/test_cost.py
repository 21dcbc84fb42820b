import torch

from heedful.config.model import ModelConfig
from heedful.evaluation.cost import SUSTAINED_TFLOPS, paper_flops
from heedful.families.build import build_model
from heedful.kernels.loss import chunked_loss
from heedful.model.contracts import training_flops
from heedful.model.flops import RowLengths
from tests.support.operations import CountedBatch, count, model_of


def test_shapes_are_enough():
    with torch.device("meta"):
        model = build_model(ModelConfig(), 37_000, 37_000, max_length=257)
    one = RowLengths.padded([1])
    # A position of the base model: six layers of 12 d^2 weights and, for a source position, the
    # keys and values of the decoder's six layers, 2 d^2 more; the decoder's layers have as many
    # weights for a target position. A multiply-add is two operations.
    layer, pair = 2 * 6 * (12 + 2) * 512**2, 2 * 6 * 2 * 512
    assert model.forward_flops(one, one) == 2 * layer + 3 * pair + 2 * 512 * 37_000
    longer = model.forward_flops(RowLengths.padded([5, 5]), RowLengths.padded([3, 1]))
    own, cross = 2 * 5 * 5 + 2 * 3 * 3, 2 * 5 * 3
    expected = (10 + 6) * layer + (own + cross) * pair + 4 * 2 * 512 * 37_000
    assert longer == expected  # of four real targets


def test_the_loss_has_the_products_that_are_counted(monkeypatch):
    monkeypatch.setattr("heedful.kernels.linear._HAS_ONEDNN", False)
    model, batch = model_of(ModelConfig(d_model=16, d_ff=24, heads=2)), CountedBatch(True)

    def loss():
        states, weight = model.states(batch.source, batch.target)[batch.real], model.output.weight
        chunked_loss(states, batch.target[batch.real], weight)[0].backward()

    # the sums over all classes, of label smoothing, are not products of the model
    sums = {torch.ops.aten.mv: lambda *_, **__: 0}
    assert count(loss, more=sums) == training_flops(model, *batch.lengths)


def test_the_costs_of_table_2_are_met_as_they_are_printed():
    p100 = SUSTAINED_TFLOPS["P100"]
    assert f"{paper_flops(12, 8, p100):.1e}" == "3.3e+18"  # base: 12 hours on 8 GPUs
    assert f"{paper_flops(3.5 * 24, 8, p100):.1e}" == "2.3e+19"  # big: 3.5 days
