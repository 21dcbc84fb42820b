"""Pipes and devices where a file is expected: refused at once, where reading would never end."""

import os
import shutil

import pytest

from heedful.bench.random_run import make_random_run, random_lines
from heedful.config.schema import RunConfig
from heedful.exchange.convert import export_model
from heedful.exchange.formats import WriteOptions
from tests.support.commands import refused, train_arguments

# A command that waits for a pipe is ended, so that its test fails and the others go on.
DEADLINE = 100


@pytest.fixture(params=["pipe", "device"])
def special(request):
    """Put a pipe, or a link to a device without end, in the place of a file."""

    def put(path):
        path.unlink(missing_ok=True)
        if request.param == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("/dev/zero")
        return path

    return put


@pytest.fixture
def run(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "run")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    small = {"model.d_model": 16, "model.d_ff": 24, "model.heads": 2, "search.max_length": "3"}
    (folder / "run").mkdir()
    make_random_run(folder / "run", RunConfig().with_settings(small), 50)
    lines = random_lines(50, 5, 2)
    options = WriteOptions("", 20)
    export_model(folder / "run", "ctranslate2", folder / "ct2", options=options, sentences=lines)
    return folder / "ct2"


def test_a_log_that_never_ends_is_neither_drawn_nor_continued(heedful_cli, text, run, special):
    special(run / "log.jsonl")
    out = run / "curves.png"
    done = heedful_cli("plot", run, "--out", out, timeout=DEADLINE)
    refused(done, "log.jsonl cannot be read: it is not an ordinary file")
    assert not out.exists()
    more = train_arguments(text, run, "train.precision=fp32", "train.steps=25")
    done = heedful_cli(*more, "--resume", timeout=DEADLINE)
    refused(
        done,
        "log.jsonl must be the log of this run",
        "it is not an ordinary file; move the file elsewhere",
    )


@pytest.mark.parametrize("name", ["config.json", "shared_vocabulary.json", "model.bin"])
def test_exported_folders_are_checked_before_ctranslate2_opens_them(
    heedful_cli, exported, tmp_path, special, name
):
    folder = shutil.copytree(exported, tmp_path / "ct2")
    special(folder / name)
    for words in (
        ("translate", folder, "--engine", "ctranslate2"),
        ("import", folder, "--from", "ctranslate2", "--out", tmp_path / "imported"),
    ):
        done = heedful_cli(*words, stdin="w1 w2\n", timeout=DEADLINE)
        refused(done, f"{folder} must contain only ordinary files, but {name} is a pipe or a")
    assert not (tmp_path / "imported").exists()


def test_files_that_options_name_must_end(heedful_cli, text, trained, tmp_path, special):
    file = special(tmp_path / "file.toml")
    recipe = train_arguments(text, tmp_path / "out")
    recipe[1] = file
    for words in (
        recipe,
        ("train", "tiny", "--corpora", file, "--out", tmp_path / "out"),
        ("serve", trained, "--api-keys", file, "--port", 0),
    ):
        refused(heedful_cli(*words, timeout=DEADLINE), str(file), "it is not an ordinary file")
    assert not (tmp_path / "out").exists()


def test_encoded_text_must_be_files(heedful_cli, text, run, special):
    special(run / "data" / "meta.json")
    more = train_arguments(text, run, "train.precision=fp32", "train.steps=25")
    done = heedful_cli(*more, "--resume", timeout=DEADLINE)
    refused(done, "meta.json", "it is not an ordinary file")
