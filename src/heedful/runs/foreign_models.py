"""Recognition of other toolkits' models, for a helpful error message."""

import json
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from heedful.files import read_within

_LARGEST = 1 << 20
# A higher-level package knows the formats that can be imported; its registry imports no modules.
_REGISTRY = "heedful.exchange.registry"
_TYPES = {
    "bert": "BERT",
    "encoder-decoder": "EncoderDecoder",
    "fsmt": "FSMT",
    "gpt2": "GPT-2",
    "llama": "Llama",
    "nllb-moe": "NLLB with experts",
    "opus-mt": "OPUS-MT",
    "pegasus": "Pegasus",
    "prophetnet": "ProphetNet",
    "seamless_m4t": "SeamlessM4T",
    "umt5": "UMT5",
}
"""Names of Hugging Face's classes, by `model_type`."""


@dataclass(frozen=True)
class KnownModel:
    """A recognized model of another toolkit."""

    kind: str
    """Name of the format for `heedful import --from`; empty if the model cannot be imported."""
    name: str
    """Description of the model, for messages."""
    advice: str
    """Advice on how to use the model: a clause without a period."""


def recognize(path: Path) -> KnownModel | None:
    """Recognize the toolkit of a model file or folder; None for a run or an unknown model."""
    if path.suffix == ".npz" or (path.is_dir() and _is_native_marian(path)):
        return KnownModel(
            "",
            "a model in Marian's own format (.npz)",
            "convert it with CTranslate2's ct2-marian-converter and import the result with --from "
            "ctranslate2, or with transformers' convert_marian_to_pytorch.py and import the "
            "result with --from marian",
        )
    return _by_files(path) or _by_settings(path) if path.is_dir() else None


def _by_files(path: Path) -> KnownModel | None:
    """Recognize a folder by its file names."""
    if (path / "model.bin").is_file():
        name = "ctranslate2"
        exported = (path / "heedful.json").is_file()
        use = "translate with --engine ctranslate2, or " if exported else ""
        return KnownModel(name, "a model of CTranslate2", f"{use}{_importing(path, name)}")
    if (path / "onnx.json").is_file() or (path / "step.onnx").is_file():
        advice = (
            "give the run from which it was exported; docs/howto/onnx.md explains how to use "
            "exported files"
        )
        return KnownModel("", "a run exported to ONNX", advice)
    if (path / "config.yaml").is_file() and any(path.glob("*.ckpt")):
        return KnownModel("joey", "a model of Joey NMT", _importing(path, "joey"))
    return None


def _by_settings(path: Path) -> KnownModel | None:
    """Recognize a Hugging Face folder by its `model_type`."""
    settings = _settings(path / "config.json")
    kind = settings.get("model_type")
    if not isinstance(kind, str) or "format" in settings:
        return None
    if toolkit := resolve_name(f"{_REGISTRY}:model_classes")().get(kind):
        title = resolve_name(f"{_REGISTRY}:TOOLKITS")[toolkit].title
        advice = _importing(path, toolkit)
        return KnownModel(toolkit, f"a model in Hugging Face's format ({title})", advice)
    titles = resolve_name(f"{_REGISTRY}:class_titles")()
    return KnownModel(
        "",
        f"a model of Hugging Face's class {_TYPES.get(kind, ascii(kind)[1:-1][:40])}",
        "heedful does not support this class; use it with transformers, or import a model of "
        f"another class ({', '.join(titles)})",
    )


def _is_native_marian(folder: Path) -> bool:
    """Return whether a folder has Marian's own files and no converted files."""
    return any(folder.glob("*.npz")) and not (folder / "config.json").exists()


def _importing(path: Path, kind: str) -> str:
    """Describe how to import a model."""
    return f"convert it to a run first: heedful import {path} --from {kind} --out RUN"


def _settings(path: Path) -> dict[str, Any]:
    """Read a settings file; empty if it is missing or invalid."""
    try:
        settings = json.loads(read_within(path, _LARGEST).decode())
    except (OSError, ValueError, RecursionError):
        return {}
    return settings if isinstance(settings, dict) else {}
