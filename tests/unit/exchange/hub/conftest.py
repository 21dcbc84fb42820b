"""A hub with one model, and an empty cache for each test."""

import pytest

from tests.support.hub import environment, running
from tests.support.marian import make

NAME = "org/tiny-en-fr"


@pytest.fixture(scope="session")
def original(tmp_path_factory):
    """The folder of a model that transformers made."""
    folder = tmp_path_factory.mktemp("hub") / "original"
    make(folder, generation={"max_length": 14})
    return folder


@pytest.fixture
def hub(original, tmp_path, monkeypatch):
    with running() as server:
        server.add_folder(NAME, original, license="apache-2.0")
        for variable, value in environment(server, tmp_path / "home").items():
            monkeypatch.setenv(variable, value)
        monkeypatch.delenv("HF_TOKEN")
        monkeypatch.chdir(tmp_path)
        yield server
