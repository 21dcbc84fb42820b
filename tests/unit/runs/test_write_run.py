from pathlib import Path

import pytest
import torch

from heedful.config.schema import RunConfig
from heedful.errors import RunFolderError
from heedful.runs.checkpoint import named_weights
from heedful.runs.folder import RunFolder
from heedful.runs.run import Run
from heedful.runs.write_run import write_run
from heedful.tokenization.tokenizer import Tokenizer
from heedful.tokenization.vocabulary import Vocabulary
from heedful.tokenization.vocabulary_model import VocabularyModel

SMALL = {"d_model": 8, "d_ff": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}


def test_a_run_is_written_with_weights_from_elsewhere(tmp_path):
    config = RunConfig().with_settings({f"model.{name}": value for name, value in SMALL.items()})
    words = VocabularyModel(Vocabulary(["the", "dog", "le", "chien"], ()))
    tokenizer = Tokenizer(words, source_language="en", target_language="fr")
    weights = named_weights(Run(RunFolder(tmp_path), config, tokenizer).build())
    origin = Path("elsewhere")
    for name in ("new", "less"):
        (tmp_path / name).mkdir()
    write_run(tmp_path / "new", config, tokenizer, weights, {"reason": "moved"}, origin)
    new = Run.open(tmp_path / "new")
    assert new.tokenizer.fingerprint == tokenizer.fingerprint
    read = new.load_checkpoint(new.checkpoint_folder())
    assert read.state["reason"] == "moved"
    assert all(torch.equal(read.model[name], weights[name]) for name in weights)
    weights.popitem()
    with pytest.raises(RunFolderError, match="the weights in elsewhere must fit"):
        write_run(tmp_path / "less", config, tokenizer, weights, {}, origin)
