"""Fine-tuning: what is kept and what is reset."""

import json

import pytest
import safetensors.torch
import torch

from heedful.tokenization.tokenizer import Tokenizer
from heedful.training.schedule import paper_rate
from tests.support.commands import train_arguments

FEW = ("train.steps=2", "train.batch_tokens=256", "train.validate_steps=none")
FEW += ("train.precision=fp32",)
STILL = (*FEW, "train.learning_rate_factor=1e-9")


def tensors(run, step, name="model"):
    return safetensors.torch.load_file(
        run / "checkpoints" / f"step-{step:08d}" / f"{name}.safetensors"
    )


def tune(heedful_cli, text, out, parent, *options, settings=STILL):
    """Train on from a run, without the settings that would go against it."""
    files = ["--source", text / "train.en", "--target", text / "train.fr", "--out", out]
    chosen = [part for setting in settings for part in ("--set", setting)]
    return heedful_cli("train", "tiny", *files, *chosen, "--finetune-from", parent, *options)


def test_weights_shape_and_subwords_come_from_the_other_run(heedful_cli, text, trained, tmp_path):
    out = tmp_path / "tuned"
    done = tune(heedful_cli, text, out, trained, "--finetune-weights", "last")
    assert done.returncode == 0, done.stderr
    assert f"from last of {trained} at step 24" in done.stderr
    before, after = tensors(trained, 24), tensors(out, 2)
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        torch.testing.assert_close(after[name], tensor, atol=1e-6, rtol=0)
    assert Tokenizer.load(out).fingerprint == Tokenizer.load(trained).fingerprint
    origin = json.loads((out / "origin.json").read_text())
    assert (origin["step"], origin["keep_state"], origin["reset"]) == (24, [], [])


def test_the_schedule_and_adam_start_anew_unless_they_are_kept(
    heedful_cli, text, trained, tmp_path
):
    old = tensors(trained, 24, "training")
    for name, options, first in (
        ("anew", (), 0),
        ("kept", ("--keep-state", "optimizer", "--keep-state", "schedule"), 24),
    ):
        out = tmp_path / name
        options = (*options, "--finetune-weights", "last")
        done = tune(heedful_cli, text, out, trained, *options, settings=FEW)
        assert done.returncode == 0, done.stderr
        line = json.loads((out / "log.jsonl").read_text().splitlines()[-1])
        assert line["learning_rate"] == pytest.approx(paper_rate(first + 2, 64, 400))
        new = tensors(out, 2, "training")
        remembers = all(
            bool((new[key] >= 0.98**2 * old[key] * (1 - 1e-5)).all())
            for key in old
            if key.startswith("second.")
        )
        assert remembers == (name == "kept")


def test_with_other_subwords_the_rows_they_share_are_taken_over(
    heedful_cli, text, trained, tmp_path
):
    out = tmp_path / "tuned"
    settings = (*STILL, "data.vocabulary_size=300")
    done = tune(heedful_cli, text, out, trained, "--reset", "tokenizer", settings=settings)
    assert done.returncode == 0, done.stderr
    old, new = Tokenizer.load(trained), Tokenizer.load(out)
    assert (old.source_size, new.source_size) == (400, 300)
    weights = trained_weights(trained)["embed_source.weight"]
    table = tensors(out, 2)["embed_source.weight"]
    old_pieces = old.pieces_source(range(400))
    shared = 0
    for row, piece in enumerate(new.pieces_source(range(300))):
        same = piece in old_pieces and torch.allclose(
            table[row], weights[old_pieces.index(piece)], atol=1e-6
        )
        assert same == (piece in old_pieces)
        shared += same
    assert 200 < shared <= 300


def trained_weights(run):
    """The default weights: the best."""
    best = json.loads((run / "best.json").read_text())["best"][0]["step"]
    return tensors(run, best)


def test_parts_of_the_model_can_start_anew(heedful_cli, text, trained, tmp_path):
    out = tmp_path / "tuned"
    done = tune(heedful_cli, text, out, trained, "--reset", "encoder", "--reset", "embeddings")
    assert done.returncode == 0, done.stderr
    before, after = trained_weights(trained), tensors(out, 2)
    for name, tensor in before.items():
        if tensor.dim() == 2:
            same = torch.allclose(after[name], tensor, atol=1e-6)
            assert same == name.startswith("decoder.")


def test_a_tuned_run_is_resumed_and_only_with_the_same_beginning(
    heedful_cli, text, trained, tmp_path
):
    out, whole = tmp_path / "tuned", tmp_path / "whole"
    longer = (*FEW, "train.steps=4")
    tune(heedful_cli, text, out, trained, settings=FEW)
    done = tune(heedful_cli, text, out, trained, "--resume", settings=longer)
    assert done.returncode == 0, done.stderr
    assert tune(heedful_cli, text, whole, trained, settings=longer).returncode == 0
    for kind in ("model", "training"):
        one, other = tensors(out, 4, kind), tensors(whole, 4, kind)
        assert all(torch.equal(one[name], other[name]) for name in other)
    refused = tune(
        heedful_cli, text, out, trained, "--resume", "--reset", "decoder", settings=longer
    )
    assert refused.returncode == 2
    assert "--reset decoder" in refused.stderr
    assert "and the command names" in refused.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--keep-state", "everything"),
            "--keep-state must be one of optimizer, schedule, but is 'everything'",
        ),
        (("--reset", "head"), "--reset must be one of tokenizer, embeddings, encoder, decoder"),
        (("--keep-state", "optimizer", "--reset", "encoder"), "choose one of the two"),
        (("--finetune-weights", "step-7"), "step-7 is not among them"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    heedful_cli, text, trained, tmp_path, options, message
):
    out = tmp_path / "tuned"
    refused = tune(heedful_cli, text, out, trained, *options)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert not out.exists()


def test_another_shape_and_a_missing_run_are_refused(heedful_cli, text, trained, tmp_path):
    settings = (*FEW, "model.d_model=32", "model.d_ff=256")
    wide = tune(heedful_cli, text, tmp_path / "wide", trained, settings=settings)
    assert wide.returncode == 2
    assert "model.d_model is 64 in that run and 32 in this one" in wide.stderr
    assert "model.d_ff is 128 in that run and 256 in this one" in wide.stderr
    assert not (tmp_path / "wide").exists()
    other = (*FEW, "model.attention.kv_heads=1", "model.gated=true")
    parts = tune(heedful_cli, text, tmp_path / "parts", trained, settings=other)
    assert parts.returncode == 2
    assert "model.attention.kv_heads is none in that run and 1 in this one" in parts.stderr
    assert "model.gated is false in that run and true in this one" in parts.stderr
    missing = tune(heedful_cli, text, tmp_path / "missing", tmp_path / "nothing")
    assert missing.returncode == 2
    assert "does not exist" in missing.stderr
    alone = heedful_cli(*train_arguments(text, tmp_path / "alone"), "--keep-state", "schedule")
    assert alone.returncode == 2
    assert "--finetune-from" in alone.stderr
