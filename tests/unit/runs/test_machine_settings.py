"""The parts of `config.json` beside the settings are checked as strictly as these."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from heedful.bench.random_run import make_random_run
from heedful.config.load import load_config
from heedful.errors import RunFolderError
from heedful.runs.folder import RunFolder
from heedful.runs.run import Run, read_corpus, read_machine_settings, write_config

FILES = {
    "source": [{"file": "train.tsv", "bytes": 12, "part": "1", "tag": ">>fr<<"}],
    "europarl.weight": [{"weight": 2}],
    "valid_source": [{"file": "valid.en", "bytes": 0, "digest": "0f"}],
    "prepared": [{"file": "text", "digest": "a1"}],
}
WRONG_CHOICES = [
    ("device", 0, "must be text"),
    ("device", "auto", "must be cpu, cuda or cuda:N"),
    ("precision", "int8", "must be fp32 or bf16"),
    ("precision", None, "must be text"),
    ("threads", "2", "must be a whole number"),
    ("threads", 0, "at least 1"),
    ("micro_batch_tokens", -1, "at least 1"),
    ("micro_batch_tokens", 2.5, "must be a whole number"),
    ("micro_batch_tokens", 10**30, "at most 1,000,000,000,000"),
    ("ranks", [2], "must be a whole number"),
    ("ranks", False, "must be a whole number"),
    ("torch", {"version": 2}, "must be text"),
    ("instructions", 512, "must be text"),
    ("batches", {}, "must be a whole number"),
    ("loss", "quick", "must be plain or compiled"),
    ("kernels", "compiled", "must be torch, plain, tiles or compiled-N"),
]
WRONG_FILES = [
    ("corpus.target", "train.fr", "must be a list"),
    ("corpus.target.0", None, "must be a table of settings"),
    ("corpus.target.0.bytes", "12", "must be a whole number"),
    ("corpus.target.0.bytes", -1, "at least 0"),
    ("corpus.target.0.file", ["train.fr"], "must be text"),
    ("corpus.target.0.weight", 0, "above 0"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    run = make_random_run(folder, load_config("tiny"), 40)
    machine = read_machine_settings(run.folder)
    write_config(run.folder, run.config, machine, {**FILES, "target": [{}]}, {})
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> RunFolder:
    return RunFolder(Path(shutil.copytree(made, tmp_path / "run")))


def change(folder: RunFolder, place: str, value: Any) -> None:
    """Set a value of `config.json` by its dotted name; the last part may be new."""
    content = json.loads(folder.config.read_text())
    inner, (*above, last) = content, place.split(".")
    for part in above:
        inner = inner[int(part) if part.isdigit() else part]
    inner[int(last) if last.isdigit() else last] = value
    folder.config.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("place", "value", "rule"),
    [(f"choices.{name}", value, rule) for name, value, rule in WRONG_CHOICES] + WRONG_FILES,
)
def test_a_wrong_value_is_refused_with_file_and_field_by_whoever_opens_the_run(
    folder: RunFolder, place: str, value: Any, rule: str
) -> None:
    Run.open(folder.path)
    change(folder, place, value)
    for read in (lambda one: Run.open(one.path), read_machine_settings, read_corpus):
        with pytest.raises(RunFolderError, match=rule) as caught:
            read(folder)
        assert str(caught.value).startswith(f"{folder.config} must be unchanged")
        assert f"`{place}`" in str(caught.value)


@pytest.mark.parametrize("table", ["choices", "corpus.target.0"])
def test_a_field_of_a_later_version_is_refused(folder: RunFolder, table: str) -> None:
    change(folder, f"{table}.vectors", 8)
    with pytest.raises(RunFolderError, match=rf"`{table}` must not have 'vectors', which this"):
        Run.open(folder.path)


@pytest.mark.parametrize("name", ["device", "precision", "threads", "micro_batch_tokens"])
def test_a_choice_that_every_run_has_made_must_be_there(folder: RunFolder, name: str) -> None:
    content = json.loads(folder.config.read_text())
    del content["choices"][name]
    folder.config.write_text(json.dumps(content))
    with pytest.raises(RunFolderError, match=rf"`choices.{name}`"):
        read_machine_settings(folder)


def test_what_was_written_is_read(folder: RunFolder) -> None:
    assert read_corpus(folder) == {**FILES, "target": [{}]}
    machine = read_machine_settings(folder)
    write_config(folder, Run.open(folder.path).config, machine, FILES, {})
    assert read_machine_settings(folder) == machine


def test_a_run_without_choices_translates_and_cannot_be_resumed(folder: RunFolder) -> None:
    content = json.loads(folder.config.read_text())
    del content["choices"], content["corpus"]
    folder.config.write_text(json.dumps(content))
    Run.open(folder.path)
    assert read_corpus(folder) == {}
    with pytest.raises(RunFolderError, match="must hold the settings that the run chose"):
        read_machine_settings(folder)
