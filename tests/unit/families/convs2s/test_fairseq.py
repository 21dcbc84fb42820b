"""Imported `fconv` models compute the same as the independent pass in NumPy."""

import numpy as np
import pytest
import torch

from heedful.errors import ExchangeError
from heedful.exchange.convert import import_model
from heedful.families.convs2s.fairseq import Kernel, Lengths
from heedful.runs.run import Run
from tests.oracles.originals import compare_import
from tests.support.old_fairseq_fconv import log_probabilities, options, write

pytestmark = pytest.mark.family("convs2s")
EOS = 2
SENTENCES = ["w1 w12 w5 w1", "w7 nothing"]
VARIANTS = {
    "all layers attend": {},
    "one layer attends": {"decoder_attention": "[False, True, False]"},
    "tied output": {"share_input_output_embed": True},
    "narrow readout": {"decoder_out_embed_dim": 5},
    "even kernels and longer residuals": {
        "encoder_layers": "[(6, 3), (6, 4, 2), (5, 1, 0)]",
        "decoder_layers": "[(6, 3, 1)] * 2 + 1 * [(6, 3, 3)]",
    },
}


def imported(folder):
    import_model("fairseq", folder, folder / "run", sentences=SENTENCES)
    parity = compare_import("fairseq", folder, folder / "run", SENTENCES)
    return Run.open(folder / "run"), parity


def compare(folder, tensors, given):
    run, parity = imported(folder)
    assert parity.difference < 1e-4
    assert parity.same_tokens == parity.sentences
    model = run.load_model("default", torch.device("cpu"), "fp32")
    here, there = (one.id_mapping for one in run.tokenizer.models)
    source, target_in = [5, 9, 4, 3, 6, EOS], [EOS, 4, 8, 3, 6]
    with torch.no_grad():
        states = model.states(
            torch.tensor([here.to_ours(source)]), torch.tensor([there.to_ours(target_in)])
        )
        found = model.log_probabilities(states[0]).numpy()[:, there.to_ours(range(there.rows))]
    wanted = log_probabilities(tensors, given, source, target_in)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    return run


@pytest.mark.parametrize("name", VARIANTS)
def test_log_probabilities_are_those_of_the_equations(name, tmp_path):
    given = options(**VARIANTS[name])
    tensors = write(tmp_path, given)
    run = compare(tmp_path, tensors, given)
    assert run.config.model.encoder == run.config.model.decoder == "convs2s"
    assert run.config.model.dropout == 0.2
    assert run.config.search.max_source_length == 19


def test_a_checkpoint_of_before_version_2_is_read(tmp_path):
    """It had one length for each shift of a decoder's kernel."""
    given = options()
    compare(tmp_path, write(tmp_path, given, version=1), given)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"arch": "fconv_self_att_wp"}, "not one of the families transformer and fconv"),
        ({"decoder_embed_dim": 4}, "`decoder_embed_dim` is 4, but the encoder's is 8"),
        ({"decoder_attention": "False"}, "`decoder_attention` is off in all layers"),
        ({"decoder_attention": "[True]"}, "`decoder_attention` has 1 values for 3 layers"),
        ({"encoder_layers": "__import__('os').abort()"}, "`encoder_layers` must"),
        ({"encoder_layers": "[(6, 3)] * 10**9"}, "with at most 1000 layers"),
        ({"encoder_layers": "[(6, 3, 2)]"}, "must be a list such as"),
        ({"encoder_layers": "[(10**6, 3)]"}, "must be a list such as"),
        (
            {"share_input_output_embed": True, "decoder_out_embed_dim": 5},
            "embeddings and readout of the same width, but they are 8 and 5",
        ),
    ],
)
def test_what_cannot_be_expressed_is_named(changes, told, tmp_path):
    write(tmp_path, options())
    saved = torch.load(tmp_path / "model.pt", weights_only=False)
    for name, value in changes.items():
        setattr(saved["args"], name, value)
    torch.save(saved, tmp_path / "model.pt")
    with pytest.raises(ExchangeError) as caught:
        imported(tmp_path)
    assert told in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("is_convolution", [True, False])
def test_weights_come_back_as_they_were(is_convolution):
    weight = torch.randn(6, 3 if is_convolution else 1, 4)
    for change, tensor in (
        (Kernel(is_convolution), weight),
        (Lengths(is_convolution), weight[:, 0, 0]),
    ):
        assert torch.equal(change.join(change.split(tensor)), tensor)


def test_missing_and_misshapen_tensors_are_named_together(tmp_path):
    def damage(tensors):
        del tensors["encoder.fc1.bias"]
        tensors["decoder.convolutions.1.weight_v"] = np.zeros((3, 6, 10), np.float32)
        return tensors

    write(tmp_path, options(), change=damage)
    with pytest.raises(ExchangeError) as caught:
        imported(tmp_path)
    for name in ("encoder.fc1.bias", "decoder.convolutions.1.weight_v"):
        assert name in str(caught.value)


def test_damaged_lengths_and_names_are_refused(tmp_path):
    def damage(tensors):
        return {
            **tensors,
            "plain": np.zeros(3, np.float32),
            "decoder.fc3.weight_g": np.zeros((2, 1), np.float32),
        }

    write(tmp_path, options(), change=damage)
    with pytest.raises(ExchangeError) as caught:
        imported(tmp_path)
    for name in ("missing: decoder.fc3.weight;", "decoder.fc3.weight_g", "plain"):
        assert name in str(caught.value)
