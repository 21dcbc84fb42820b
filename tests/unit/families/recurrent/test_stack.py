"""What recurrent encoders and decoders share: first weights, and how they are counted."""

from heedful.families.recurrent.config import RecurrentConfig
from heedful.families.recurrent.stack import RecurrentStack
from heedful.model.flops import RowLengths
from heedful.model.initialize import initialize
from tests.support.models import small


def test_recurrent_weights_begin_within_their_range():
    recurrent = RecurrentConfig(score="scaled", forget_bias=2.0, initial_range=0.05)
    model = small(encoder="recurrent", decoder="recurrent", recurrent=recurrent)
    for name, weight in model.named_parameters():
        if name.endswith("scale"):
            assert weight.item() == 1.0
        elif "bias_ih" in name:
            forget = weight[16:32]
            assert (forget - 2.0).abs().max() <= 0.05
        else:
            assert 0.04 < weight.abs().max() <= 0.05, name
    again = small(encoder="recurrent", decoder="recurrent", recurrent=recurrent)
    initialize(again, 1)
    for one, other in zip(model.parameters(), again.parameters(), strict=True):
        assert one.equal(other)


def test_glorot_bounds_each_gate_on_its_own():
    recurrent = RecurrentConfig(initialisation="glorot", forget_bias=0.0)
    model = small(encoder="recurrent", decoder="recurrent", recurrent=recurrent)
    weights = dict(model.named_parameters())
    gates = weights["decoder.layers.1.rnn.weight_ih_l0"]
    bound = (6 / (16 + 16)) ** 0.5
    for gate in gates.split(16):
        assert 0.9 * bound < gate.abs().max() <= bound
    assert not weights["decoder.layers.1.rnn.bias_hh_l0"].any()
    assert weights["decoder.attention.energy"].any()


def test_the_start_state_is_computed_once_a_sentence():
    zero, bridge = (
        small(encoder="recurrent", decoder="recurrent", recurrent=RecurrentConfig(start=start))
        for start in ("zero", "bridge")
    )
    assert isinstance(bridge.decoder, RecurrentStack)
    lengths = RowLengths.padded([5, 3]), RowLengths.padded([4, 2])
    own, of_memory = bridge.decoder.flops(*lengths)
    without = zero.decoder.flops(*lengths)
    assert own == without.own
    assert of_memory - without.memory == 2 * 2 * bridge.decoder.start_proj.weight.numel() > 0
