"""The known toolkits; their modules are imported on first use."""

from collections.abc import Collection, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

from heedful.errors import ExchangeError

HUGGING_FACE = "huggingface"
"""Name for any Hugging Face class; imports choose it by `model_type`, exports by the settings."""


class Toolkit(NamedTuple):
    """A toolkit for imports or exports."""

    reader: str = ""
    writer: str = ""
    """Modules of reader and writer (`heedful.exchange.formats`); empty if there is none."""
    reads: str = ""
    writes: str = ""
    """Descriptions of the formats that the modules read and write."""
    aliases: Mapping[str, str] = MappingProxyType({})
    """Aliases, each with the `model_type` that an export writes for it."""
    model_types: tuple[str, ...] = ()
    """Values of `model_type` in config.json, if the toolkit is a class of Hugging Face."""
    title: str = ""
    """Name of the class in messages."""


TOOLKITS = {
    "marian": Toolkit(
        "heedful.exchange.marian.read",
        "heedful.exchange.marian.write",
        "OPUS-MT in Hugging Face's format",
        "also opus-mt",
        {"marianmt": "marian", "opus-mt": "marian"},
        ("marian",),
        "Marian",
    ),
    "bart": Toolkit(
        "heedful.exchange.bart.read",
        "heedful.exchange.bart.write",
        "BART, mBART, M2M100 and NLLB in Hugging Face's format",
        "also m2m100, nllb, mbart and mbart50, each for runs of that class",
        {
            **dict.fromkeys(("m2m100", "m2m-100", "nllb"), "m2m_100"),
            **dict.fromkeys(("mbart", "mbart50", "mbart-50"), "mbart"),
        },
        ("bart", "mbart", "m2m_100"),
        "BART, mBART, M2M100 and NLLB",
    ),
    "t5": Toolkit(
        "heedful.exchange.t5.read",
        "heedful.exchange.t5.write",
        "T5, Flan-T5 and mT5 in Hugging Face's format",
        "also mt5 and flan-t5",
        dict.fromkeys(("flan-t5", "mt5"), "t5"),
        ("t5", "mt5"),
        "T5",
    ),
    "ctranslate2": Toolkit(
        "heedful.exchange.ctranslate2.read", "heedful.exchange.ctranslate2.write"
    ),
    "onnx": Toolkit(writer="heedful.exchange.onnx.write"),
    "fairseq": Toolkit("heedful.exchange.fairseq.read"),
    "opennmt": Toolkit("heedful.exchange.opennmt"),
    "joey": Toolkit("heedful.exchange.joey"),
}
"""Toolkits by their names on the command line."""
_ALIASES = ("hf", "transformers")


def reader_names() -> dict[str, str]:
    """Return the toolkits for imports, each with a description."""
    readers = {name: toolkit.reads for name, toolkit in TOOLKITS.items() if toolkit.reader}
    return {HUGGING_FACE: "a folder of Hugging Face's transformers", **readers}


def writer_names() -> dict[str, str]:
    """Return the toolkits for exports, each with a description."""
    writers = {name: toolkit.writes for name, toolkit in TOOLKITS.items() if toolkit.writer}
    return {HUGGING_FACE: "for transformers, in the class that fits the run", **writers}


def model_classes() -> dict[str, str]:
    """Return the toolkit of each Hugging Face class that can be imported, by `model_type`."""
    return {kind: name for name, toolkit in TOOLKITS.items() for kind in toolkit.model_types}


def written_classes() -> dict[str, str]:
    """Return the titles of the Hugging Face classes that can be exported, by toolkit."""
    return {
        name: toolkit.title
        for name, toolkit in TOOLKITS.items()
        if toolkit.model_types and toolkit.writer
    }


def is_class(kind: str) -> bool:
    """Return whether a toolkit's name means one class of Hugging Face, or all of them."""
    return kind == HUGGING_FACE or kind in model_classes().values()


def class_titles() -> list[str]:
    """List the titles of the Hugging Face classes that can be imported."""
    return [toolkit.title for toolkit in TOOLKITS.values() if toolkit.model_types]


def library_of(kind: str) -> str:
    """Return the hub's name for the library that loads the exported files."""
    return "transformers" if is_class(kind) else kind


def list_toolkits(names: dict[str, str]) -> str:
    """List toolkits for ``--help``."""
    *first, last = (f"{name} ({text})" if text else name for name, text in names.items())
    return f"{', '.join(first)} or {last}"


def reader_name(kind: str) -> str:
    """Find a toolkit by name or alias; refuse toolkits without a reader."""
    return _name(kind, reader_names(), "--from")


def load_reader(kind: str) -> Any:
    """Import the reader of a toolkit, or of one Hugging Face class; `huggingface` has no reader."""
    return import_module(TOOLKITS[reader_name(kind)].reader)


def writer_name(kind: str) -> str:
    """Find a toolkit by name or alias; refuse toolkits without a writer."""
    return _name(kind, writer_names(), "--format")


def load_writer(kind: str) -> Any:
    """Import the writer of a toolkit."""
    return import_module(TOOLKITS[writer_name(kind)].writer)


def _name(kind: str, names: dict[str, str], option: str) -> str:
    """Find a toolkit by its name or an alias."""
    if kind in names:
        return kind
    if name := next((name for name in names if _alias(kind) in _aliases(name)), None):
        return name
    raise ExchangeError(f"{option} must be one of {', '.join(names)}, but is {kind!r}.")


def class_meant(kind: str) -> str:
    """Find the `model_type` that an alias means; empty if the name means none."""
    named = (toolkit.aliases.get(_alias(kind), "") for toolkit in TOOLKITS.values())
    return next(filter(None, named), "")


def _alias(kind: str) -> str:
    """Normalize a name to the spelling of aliases."""
    return kind.lower().replace("_", "-")


def _aliases(name: str) -> Collection[str]:
    """List the aliases of a toolkit."""
    return _ALIASES if name == HUGGING_FACE else TOOLKITS[name].aliases
