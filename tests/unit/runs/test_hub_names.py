"""What is a path and what a name of the hub; tests/unit/exchange/hub fetches models."""

from pathlib import Path

import pytest

from heedful.errors import RunFolderError
from heedful.runs.folder import RunFolder
from heedful.runs.hub_names import HubName, hub_name, pinned_name, run_folder, run_path


@pytest.mark.parametrize(
    ("text", "repo", "revision"),
    [
        ("Helsinki-NLP/opus-mt-en-de", "Helsinki-NLP/opus-mt-en-de", "main"),
        ("a/b.c_d@v1.0", "a/b.c_d", "v1.0"),
        ("a/b@refs/pr/1", "a/b", "refs/pr/1"),
    ],
)
def test_names_have_an_organization_and_may_have_a_revision(text, repo, revision):
    name = HubName.parse(text)
    assert (name.repo, name.revision) == (repo, revision)
    assert str(name) == text
    assert name.title == repo.split("/")[1]


@pytest.mark.parametrize(
    "text",
    [
        "t5-small",
        "/a/b",
        "a/b/c",
        "../b",
        "a/..b",
        "./a",
        "a/b@",
        "a/b@../c",
        "a b/c",
        "a/",
        "-a/b",
        "a--b/c",
        "a/b--c",
        "a/b.git",
        "a/b.",
        "a-/b",
        f"a/{'b' * 95}",
    ],
)
def test_paths_and_single_words_are_no_names(text):
    assert HubName.parse(text) is None


def test_what_begins_with_the_folder_here_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert hub_name(run_path("./org/name")) is None
    assert hub_name(run_path("org/name")) == HubName("org/name")
    assert run_path("./org/name") == tmp_path / "org" / "name"
    for text in ("org/name", "./mine", "../org/name", "/org/name", "."):
        assert str(run_path(text)) == str(Path(text))
    (tmp_path / "org" / "name").mkdir(parents=True)
    assert str(run_path("./org/name")) == "org/name"


def test_what_exists_here_is_a_path_and_so_is_what_a_folder_here_may_hold(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert hub_name("org/model") == HubName("org/model")
    assert hub_name("runs/model") is None
    Path("org").mkdir()
    assert hub_name("org/model") is None
    assert hub_name("org/model@main") == HubName("org/model")
    Path("org/model").mkdir()
    Path("org/model@main").mkdir()
    assert hub_name("org/model@main") is None
    assert run_folder("org/model") == Path("org/model")
    assert pinned_name(Path("org/model")) == "org/model"


@pytest.mark.parametrize("path", ["nothing", "runs/en-de", "/a/b", "a/b/c", "../b"])
def test_a_path_that_is_no_name_on_the_hub_is_to_be_checked(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunFolderError, match=r"does not exist; check the path\.$"):
        RunFolder(Path(path)).require()


def test_a_name_that_a_folder_here_hides_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    with pytest.raises(
        RunFolderError, match=r"check the path. there/en-de@main always names a model"
    ):
        RunFolder(Path("there/en-de")).require()


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("t5-small", "as in google-t5/t5-small"),
        ("https://huggingface.co/org/name", "write org/name to name a model"),
        ("https://hf.co/org/name/tree/main", "write org/name to name a model"),
        ("hf://org/name", "write org/name to name a model"),
    ],
)
def test_other_ways_to_write_a_name_are_told(path, advice, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunFolderError, match=advice):
        RunFolder(Path(path)).require()
