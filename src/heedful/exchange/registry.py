"""The toolkits that there are: a line for each; their modules are imported on first use."""

from importlib import import_module
from typing import Any, NamedTuple

from heedful.errors import ExchangeError


class Toolkit(NamedTuple):
    """The modules that read and write a toolkit's models (`heedful.exchange.formats`)."""

    reader: str = ""
    writer: str = ""


TOOLKITS = {
    "ctranslate2": Toolkit(
        "heedful.exchange.ctranslate2.read", "heedful.exchange.ctranslate2.write"
    ),
    "marian": Toolkit("heedful.exchange.marian.read", "heedful.exchange.marian.write"),
    "onnx": Toolkit(writer="heedful.exchange.onnx.write"),
    "fairseq": Toolkit("heedful.exchange.fairseq.read"),
    "opennmt": Toolkit("heedful.exchange.opennmt"),
    "joey": Toolkit("heedful.exchange.joey"),
}
"""By the name on the command line."""

_HUGGING_FACE = ("hf", "huggingface", "marianmt", "opus-mt", "transformers")
_ALIASES = {
    "--from": dict.fromkeys(
        _HUGGING_FACE, ("marian", "reads the folders of Hugging Face's OPUS-MT")
    ),
    "--format": dict.fromkeys(_HUGGING_FACE, ("marian", "writes what transformers reads")),
}
"""Other names of toolkits, by option: what to give instead and why."""


def load_reader(kind: str) -> Any:
    """Import the reader of a toolkit."""
    return _load(kind, {name: toolkit.reader for name, toolkit in TOOLKITS.items()}, "--from")


def load_writer(kind: str) -> Any:
    """Import the writer of a toolkit."""
    return _load(kind, {name: toolkit.writer for name, toolkit in TOOLKITS.items()}, "--format")


def _load(kind: str, modules: dict[str, str], option: str) -> Any:
    """Import a module, or refuse a name that has none."""
    if not modules.get(kind):
        names = ", ".join(name for name, module in modules.items() if module)
        alias = _ALIASES[option].get(kind.lower().replace("_", "-"))
        hint = f" {option} {alias[0]} {alias[1]}." if alias else ""
        raise ExchangeError(f"{option} must be one of {names}, but is {kind!r}.{hint}")
    return import_module(modules[kind])
