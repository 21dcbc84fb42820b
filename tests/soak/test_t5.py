"""200 of 200 translations of T5 models are those of transformers, greedy and by a beam."""

import shutil

import pytest

from heedful.exchange.convert import import_model
from heedful.exchange.formats import ReadOptions
from tests.support.t5 import GATED, make, text

pytestmark = pytest.mark.family("relative_buckets", "rms_norm")
KINDS = {
    "1.0": {},
    "1.1": {"own_head": True, **GATED},
    "1.1, tied": {"feed_forward_proj": "gated-gelu", "scale_decoder_outputs": False},
}


@pytest.fixture(scope="module", params=KINDS)
def trained(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("t5") / "theirs"
    make(folder, steps=150, spread=0.02, d_model=32, **KINDS[request.param])
    return folder


@pytest.mark.parametrize("beam", [1, 4])
def test_all_translations_are_equal(trained, beam, tmp_path):
    from transformers import GenerationConfig

    shutil.copytree(trained, tmp_path / "theirs")
    rule = GenerationConfig.from_pretrained(trained)
    rule.update(num_beams=beam, max_length=32, early_stopping=beam > 1)
    rule.save_pretrained(tmp_path / "theirs")
    sentences = [pair[0] for pair in text(200)]
    report, _ = import_model(
        "t5",
        tmp_path / "theirs",
        tmp_path / "run",
        options=ReadOptions(source_prefix="translate English to French:  "),
        sentences=sentences,
    )
    assert report.parity.difference < 1e-5
    assert report.parity.sentences == 200
    assert (report.parity.same_tokens, report.parity.same_outputs) == (200, 200)
