"""200 of 200: BART translates as transformers does, greedily and with a beam, trained or random."""

import pytest

from heedful.exchange.convert import export_model, import_model
from tests.support.byte_bart import make_bart
from tests.support.marian import text

SENTENCES = [pair[0] for pair in text(200)]
GREEDY = {"num_beams": 1, "max_length": 20}
BEAM = {"num_beams": 4, "max_length": 20, "no_repeat_ngram_size": 3}


@pytest.mark.soak
@pytest.mark.parametrize("search", [GREEDY, BEAM], ids=["greedy", "beam"])
@pytest.mark.parametrize("steps", [0, 150], ids=["random", "trained"])
def test_two_hundred_translations_are_equal(search, steps, tmp_path):
    make_bart(tmp_path / "theirs", steps=steps, spread=0.02 if steps else 0.3, generation=search)
    ways = [
        import_model("huggingface", tmp_path / "theirs", tmp_path / "run", sentences=SENTENCES)[
            0
        ].parity,
        export_model(tmp_path / "run", "bart", tmp_path / "again", sentences=SENTENCES)[0],
    ]
    for parity in ways:
        assert parity.difference < 1e-5
        assert (parity.same_tokens, parity.same_outputs) == (200, 200), parity
