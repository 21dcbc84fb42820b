"""`heedful import` of old checkpoints, as a command."""

import os

import torch

from tests.support import old_fairseq


class Asks:
    """Pickles as a call of the system's shell."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def test_a_hostile_checkpoint_is_refused_in_one_paragraph(heedful_cli, tmp_path):
    mark, out = tmp_path / "mark", tmp_path / "run"
    path = tmp_path / "model.pt"
    torch.save({"model": {"a": torch.ones(1)}, "args": Asks(f"touch {mark}")}, path)
    for kind, given in (("fairseq", path), ("opennmt", path), ("fairseq", tmp_path)):
        done = heedful_cli("import", given, "--from", kind, "--out", out)
        assert done.returncode == 2
        assert "posix.system" in done.stderr
        assert "Traceback" not in done.stderr
        assert not mark.exists()
        assert not out.exists()


def test_an_old_model_becomes_a_run_that_translates(heedful_cli, tmp_path):
    old_fairseq.write(tmp_path, old_fairseq.options())
    out = tmp_path / "run"
    done = heedful_cli("import", tmp_path, "--from", "fairseq", "--out", out)
    assert done.returncode == 0, done.stderr
    filled = "all 63 tensors of the run are filled"
    assert f"{filled}, and each tensor of the original is used once (without" in done.stdout
    assert "12 of 12 sentences have the same subwords" in done.stdout
    assert "not compared with fairseq" in done.stdout
    assert "split at spaces" in done.stderr
    done = heedful_cli("translate", out, "--beam", "1", stdin="w1 w2\n\nw3\n")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    done = heedful_cli("import", tmp_path, "--from", "fairseq", "--out", out)
    assert done.returncode == 2
    assert "exists" in done.stderr
