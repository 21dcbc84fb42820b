"""The data and the training that travel to a machine with a GPU."""

import json
import shutil

import numpy as np
import pytest
from benchmarks import device_training
from benchmarks.device_training import lengths_of, offsets_of, pack, train, unpack
from benchmarks.report import heedful
from benchmarks.training import chosen

from tests.support.commands import write_text

LANGUAGES = ("data.source_language=en", "data.target_language=fr")


@pytest.fixture(scope="module")
def folder(grammar, tmp_path_factory):
    """A prepared corpus with held-out text, as `prepare` lays it out."""
    place = tmp_path_factory.mktemp("text")
    for pairs, name in ((grammar[0][:300], "train"), (grammar[1], "valid")):
        write_text(place, pairs, name)
    folder = tmp_path_factory.mktemp("made") / "folder"
    folder.mkdir()
    for name in ("valid", "test"):  # the languages of Europarl's files
        shutil.copy(place / "valid.en", folder / f"{name}.fr")
        shutil.copy(place / "valid.fr", folder / f"{name}.en")
    text = ("--source", place / "train.en", "--target", place / "train.fr")
    settings = chosen((*LANGUAGES, "data.vocabulary_size=200"))
    heedful("data", "prepare", "paper-base", *text, *settings, "--out", folder / "prepared")
    return folder


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in files}


def test_what_is_unpacked_equals_what_was_packed(folder, tmp_path):
    pack(folder, tmp_path / "packed")
    unpack(tmp_path / "packed", tmp_path / "unpacked")
    before = contents(folder)
    assert contents(tmp_path / "unpacked") == before
    assert {path.suffix for path in before} >= {".ids", ".offsets", ".model", ".json", ".fr"}
    sizes = [sum(map(len, contents(place).values())) for place in (tmp_path / "packed", folder)]
    assert sizes[0] < 0.5 * sizes[1]


def test_a_changed_file_is_refused_and_leaves_no_folder(folder, tmp_path):
    packed = tmp_path / "packed"
    pack(folder, packed)
    shutil.copy(packed / "test.en.xz", packed / "test.fr.xz")
    with pytest.raises(SystemExit, match=r"test\.fr must be what was packed"):
        unpack(packed, tmp_path / "unpacked")
    assert not (tmp_path / "unpacked").exists()


def test_offsets_are_restored_from_lengths():
    offsets = np.array([0, 3, 3, 65_538, 70_000], "<u8").tobytes()
    assert offsets_of(lengths_of(offsets)) == offsets
    assert offsets_of(lengths_of(b"")) == b""
    with pytest.raises(SystemExit, match="fewer than 65,536 tokens"):
        lengths_of(np.array([0, 65_536], "<u8").tobytes())


@pytest.mark.soak
def test_a_training_goes_on_until_its_minutes_and_leaves_what_is_kept(
    folder, tmp_path, monkeypatch
):
    pack(folder, tmp_path / "packed")
    monkeypatch.setattr(device_training, "PACKED", tmp_path / "packed")
    run, out = tmp_path / "run", tmp_path / "out"
    small = (
        *("model.d_model=16", "model.d_ff=32", "model.heads=2", "model.encoder_layers=1"),
        *("model.decoder_layers=1", "train.batch_tokens=300", "train.micro_batch_tokens=300"),
        *("train.checkpoint_steps=5", "train.device=cpu", "train.threads=1"),
    )
    seconds = []
    for until in (0.05, 0.1):  # the second sitting resumes the first
        train(tmp_path / "text", until, out, small, run)
        lines = (out / "log.jsonl").read_text(encoding="utf-8").splitlines()
        seconds.append(max(json.loads(line).get("seconds", 0) for line in lines))
    assert 3 <= seconds[0] < 6 <= seconds[1]
    names = {"config.json", "curve.svg", "log.jsonl", "machine.txt", "samples.txt", "scores.json"}
    assert {path.name for path in out.iterdir()} == names
    scores = json.loads((out / "scores.json").read_text(encoding="utf-8"))
    assert scores
    samples = (out / "samples.txt").read_text(encoding="utf-8").split("\n\n")
    assert len(samples) == len((folder / "test.fr").read_text(encoding="utf-8").splitlines())
