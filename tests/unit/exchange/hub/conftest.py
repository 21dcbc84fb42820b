"""A hub with one model, and an empty cache for each test."""

from functools import partial

import pytest

from heedful.exchange.convert import import_model
from heedful.exchange.parity import sample_sentences
from tests.support.hub import environment, running
from tests.support.marian import make

NAME = "org/tiny-en-fr"


@pytest.fixture(scope="session")
def original(tmp_path_factory):
    """The folder of a model that transformers made, shallow and with a short search."""
    folder = tmp_path_factory.mktemp("hub") / "original"
    rule = {"num_beams": 1, "max_length": 8}
    make(folder, generation=rule, encoder_layers=1, decoder_layers=1)
    return folder


@pytest.fixture(scope="session")
def converted(original, tmp_path_factory):
    """The same model as a run, which no test changes."""
    run = tmp_path_factory.mktemp("hub") / "converted"
    import_model("marian", original, run)
    return run


@pytest.fixture
def hub(original, tmp_path, monkeypatch):
    """A hub that runs; what comes from it is compared on three sentences."""
    few = partial(sample_sentences, count=3)
    monkeypatch.setattr("heedful.exchange.convert.sample_sentences", few)
    with running() as server:
        server.add_folder(NAME, original, license="apache-2.0")
        for variable, value in environment(server, tmp_path / "home").items():
            monkeypatch.setenv(variable, value)
        monkeypatch.delenv("HF_TOKEN")
        monkeypatch.chdir(tmp_path)
        yield server
