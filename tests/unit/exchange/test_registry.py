"""Each toolkit has one line, and its modules keep the contract."""

import pytest

from heedful.errors import ExchangeError
from heedful.exchange.formats import ComparedReader, Reader, Writer
from heedful.exchange.registry import (
    TOOLKITS,
    class_meant,
    list_toolkits,
    load_reader,
    load_writer,
    reader_name,
    writer_name,
    writer_names,
)


def test_every_module_keeps_its_contract():
    readers = {name: load_reader(name) for name, toolkit in TOOLKITS.items() if toolkit.reader}
    writers = {name: load_writer(name) for name, toolkit in TOOLKITS.items() if toolkit.writer}
    assert all(isinstance(reader, Reader) for reader in readers.values())
    assert all(isinstance(writer, Writer) for writer in writers.values())
    compared = {name for name, reader in readers.items() if isinstance(reader, ComparedReader)}
    classes = {name for name, toolkit in TOOLKITS.items() if toolkit.model_types}
    assert compared == {"ctranslate2", *classes}


@pytest.mark.parametrize(("load", "named"), [(load_reader, "joey"), (load_writer, "onnx")])
def test_an_unknown_toolkit_is_refused_with_the_known_ones(load, named):
    with pytest.raises(ExchangeError, match=f"must be one of .*marian, .*{named}.* is 'other'"):
        load("other")


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("HF", "huggingface"),
        ("transformers", "huggingface"),
        ("opus_mt", "marian"),
        ("mbart", "bart"),
        ("mbart50", "bart"),
        ("M2M100", "bart"),
        ("m2m_100", "bart"),
        ("nllb", "bart"),
        ("flan-t5", "t5"),
        ("mt5", "t5"),
        ("onnx", "onnx"),
    ],
)
def test_a_toolkit_has_the_names_that_people_give(alias, name):
    assert writer_name(alias) == name
    if name != "onnx":
        assert reader_name(alias) == name


def test_an_alias_may_mean_one_class():
    assert class_meant("mBART_50") == "mbart"
    assert class_meant("mt5") == class_meant("flan-t5") == "t5"
    assert class_meant("nllb") == class_meant("m2m100") == "m2m_100"
    for name in ("bart", "t5", "huggingface", "ctranslate2"):
        assert class_meant(name) == ""


def test_toolkits_are_listed_for_the_help():
    names = {"marian": "what transformers reads", "ctranslate2": "", "onnx": ""}
    assert list_toolkits(names) == "marian (what transformers reads), ctranslate2 or onnx"
    assert {*names} <= {*writer_names()}
