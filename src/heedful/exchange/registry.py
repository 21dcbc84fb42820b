"""The toolkits that there are: a line for each; their modules are imported on first use."""

from importlib import import_module
from typing import Any, NamedTuple

from heedful.errors import ExchangeError


class Toolkit(NamedTuple):
    """A toolkit whose models are read or written."""

    reader: str = ""
    writer: str = ""
    """Its modules (`heedful.exchange.formats`); empty if there is none."""
    reads: str = ""
    writes: str = ""
    """What its modules read and write, where its name does not say so."""
    aliases: tuple[str, ...] = ()
    """Other names that people give."""


TOOLKITS = {
    "marian": Toolkit(
        "heedful.exchange.marian.read",
        "heedful.exchange.marian.write",
        "the folders of Hugging Face's OPUS-MT",
        "what transformers reads",
        ("hf", "huggingface", "marianmt", "opus-mt", "transformers"),
    ),
    "ctranslate2": Toolkit(
        "heedful.exchange.ctranslate2.read", "heedful.exchange.ctranslate2.write"
    ),
    "onnx": Toolkit(writer="heedful.exchange.onnx.write"),
    "fairseq": Toolkit("heedful.exchange.fairseq.read"),
    "opennmt": Toolkit("heedful.exchange.opennmt"),
    "joey": Toolkit("heedful.exchange.joey"),
}
"""By the name on the command line."""


def reader_names() -> dict[str, str]:
    """Name the toolkits that are read, each with a remark."""
    return {name: toolkit.reads for name, toolkit in TOOLKITS.items() if toolkit.reader}


def writer_names() -> dict[str, str]:
    """Name the toolkits that are written, each with a remark."""
    return {name: toolkit.writes for name, toolkit in TOOLKITS.items() if toolkit.writer}


def listed(names: dict[str, str]) -> str:
    """List toolkits for ``--help``."""
    *first, last = (f"{name} ({text})" if text else name for name, text in names.items())
    return f"{', '.join(first)} or {last}"


def load_reader(kind: str) -> Any:
    """Import the reader of a toolkit."""
    _check(kind, reader_names(), "--from", "reads")
    return import_module(TOOLKITS[kind].reader)


def load_writer(kind: str) -> Any:
    """Import the writer of a toolkit."""
    _check(kind, writer_names(), "--format", "writes")
    return import_module(TOOLKITS[kind].writer)


def _check(kind: str, names: dict[str, str], option: str, verb: str) -> None:
    """Refuse an unknown name, and say what is meant by an alias."""
    if kind in names:
        return
    alias = kind.lower().replace("_", "-")
    meant = (name for name in names if alias in TOOLKITS[name].aliases)
    hint = "".join(f" {option} {name} {verb} {names[name]}." for name in meant)
    raise ExchangeError(f"{option} must be one of {', '.join(names)}, but is {kind!r}.{hint}")
