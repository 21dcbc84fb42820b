"""Each toolkit has one line, and its modules keep the contract."""

import pytest

from heedful.errors import ExchangeError
from heedful.exchange.formats import ComparedReader, Reader, Writer
from heedful.exchange.registry import TOOLKITS, listed, load_reader, load_writer, writer_names


def test_every_module_keeps_its_contract():
    readers = {name: load_reader(name) for name, toolkit in TOOLKITS.items() if toolkit.reader}
    writers = {name: load_writer(name) for name, toolkit in TOOLKITS.items() if toolkit.writer}
    assert all(isinstance(reader, Reader) for reader in readers.values())
    assert all(isinstance(writer, Writer) for writer in writers.values())
    compared = {name for name, reader in readers.items() if isinstance(reader, ComparedReader)}
    assert compared == {"ctranslate2", "marian"}


@pytest.mark.parametrize(("load", "named"), [(load_reader, "joey"), (load_writer, "onnx")])
def test_an_unknown_toolkit_is_refused_with_the_known_ones(load, named):
    with pytest.raises(ExchangeError, match=f"must be one of marian, .*{named}.* is 'other'"):
        load("other")


def test_toolkits_are_listed_for_the_help():
    expected = "marian (what transformers reads), ctranslate2 or onnx"
    assert listed(writer_names()) == expected
