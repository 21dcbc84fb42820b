import shutil
from pathlib import Path

import pytest
import torch

from heedful.errors import RunFolderError
from heedful.runs.run import Run
from heedful.runs.write_run import write_run

RUN = Path(__file__).parents[2] / "formats" / "1" / "run"


def test_a_run_is_written_with_weights_from_elsewhere(tmp_path):
    shutil.copytree(RUN, tmp_path / "old")
    old = Run.open(tmp_path / "old")
    weights = dict(old.load_checkpoint(old.checkpoint_folder()).model)
    origin = Path("elsewhere")
    for name in ("new", "less"):
        (tmp_path / name).mkdir()
    write_run(tmp_path / "new", old.config, old.tokenizer, weights, {"reason": "moved"}, origin)
    new = Run.open(tmp_path / "new")
    assert new.tokenizer.fingerprint == old.tokenizer.fingerprint
    read = new.load_checkpoint(new.checkpoint_folder())
    assert read.state["reason"] == "moved"
    assert all(torch.equal(read.model[name], weights[name]) for name in weights)
    weights.popitem()
    with pytest.raises(RunFolderError, match="the weights in elsewhere must fit"):
        write_run(tmp_path / "less", old.config, old.tokenizer, weights, {}, origin)
