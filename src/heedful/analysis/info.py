"""Information about the installation, the machine or a run."""

import importlib.metadata
import json
import re
from pathlib import Path
from typing import Any

import torch

from heedful._version import __version__
from heedful.analysis.training_cost import training_cost
from heedful.config.train import TWO_PASSES, TrainConfig
from heedful.families.registry import families
from heedful.kernels.api import (
    compiled_origin,
    kernels_choice,
    why_not_native,
)
from heedful.machine.devices import describe_machine
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.inference import compiles_bf16
from heedful.model.known_layers import why_not_compiled
from heedful.model.transformer import Transformer
from heedful.model.weights import parameter_count
from heedful.runs.checkpoint import STATE, read_averages
from heedful.runs.folder import read_json
from heedful.runs.hub_names import RECORD
from heedful.runs.log_entries import read_entries
from heedful.runs.run import Run, best_steps, read_machine_settings, read_plugins
from heedful.training.health.registry import describe_all
from heedful.training.history import read_history

_CORE = ""  # the packages that every installation needs
_FOR_DEVELOPERS = ("docs", "dev")


def describe_installation() -> dict[str, Any]:
    """List versions, devices and missing extras."""
    versions = {
        extra: {name: _version(name) for name in packages}
        for extra, packages in _requirements().items()
    }
    return {
        "heedful": __version__,
        "machine": describe_machine(),
        "kernels": kernels_choice(),
        "compiled": _describe_compiled(),
        "packages": versions[_CORE],
        "extras": {
            extra: f"missing: pip install 'heedful[{extra}]'" if None in own.values() else own
            for extra, own in versions.items()
            if extra not in (_CORE, *_FOR_DEVELOPERS)
        },
    }


def _requirements() -> dict[str, list[str]]:
    """List the required packages of the installation, by extra."""
    packages: dict[str, list[str]] = {_CORE: []}
    installed = next(iter(importlib.metadata.distributions(name="heedful")), None)
    for line in (installed and installed.requires) or ():
        extra = re.search(r"extra == [\"'](\w+)", line)
        name = re.split(r"[^\w.-]", line, maxsplit=1)[0]
        packages.setdefault(extra[1] if extra else _CORE, []).append(name)
    return packages


def _describe_compiled() -> str:
    """State whether the compiled functions for translation are available."""
    origin = compiled_origin()
    if origin is not None:
        kinds = "fp32, bf16 and int8" if compiles_bf16() else "fp32 and int8"
        return f"functions of --precision {kinds}, {origin}"
    return f"no functions ({why_not_native()}); they would make --precision fp32 and int8 faster"


def describe_run(path: str | Path) -> dict[str, Any]:
    """Describe a run without reading weights, which is quick for a model of any size."""
    run = Run.open(path)
    model = _outline(run)
    steps = run.folder.steps()
    places = {f"step-{step}": run.folder.checkpoint(step) for step in steps}
    if run.folder.average.is_dir():
        places["average"] = run.folder.average
    weights = {name: read_json(place / STATE) for name, place in places.items()}
    source, target = run.vocabularies
    cost = {}
    if run.folder.log.is_file():
        cost["cost"] = training_cost(run, read_history(run.folder.log))
        cost |= _health(run.folder.log)
    return {
        "run": str(run.folder.path),
        "recipe": run.config.recipe,
        "reading": run.config.reading,
        "languages": [run.config.data.source_language, run.config.data.target_language],
        "parameters": parameter_count(model),
        **_layers(model),
        "vocabulary": {"source": source, "target": target, "kind": run.tokenizer.kind}
        | ({"tags": list(run.tokenizer.tags)} if run.tokenizer.tags else {}),
        "tokenizer_sha256": run.tokenizer.fingerprint,
        "choices": vars(read_machine_settings(run.folder)),
        "step": steps[-1] if steps else 0,
        **_objective(run.config.train),
        "best_by": run.config.train.best_by,
        "best_steps": best_steps(run.folder),
        **({"best": read_json(run.folder.best)["best"][0]} if best_steps(run.folder) else {}),
        **cost,
        **_shares(run, steps),
        **_hub(run.folder.path / RECORD),
        **({"plugins": used} if (used := read_plugins(run.folder)) else {}),
        "weights": {name: _weights_line(state) for name, state in weights.items()},
        "settings": run.config.to_dict(),
    }


def count_parameters(run: Run) -> int:
    """Count the weights of a run without reading them."""
    return parameter_count(_outline(run))


def as_text(description: dict[str, Any], indent: str = "") -> str:
    """Format a description as text."""
    lines = []
    for key, value in description.items():
        if isinstance(value, dict) and value:
            lines += [f"{indent}{key}", as_text(value, indent + "  ")]
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if isinstance(value, float) and value >= 1e6:  # large numbers, such as operations
                text = f"{value:g}"
            lines.append(f"{indent}{key}: {text}")
    return "\n".join(lines)


def _outline(run: Run) -> EncoderDecoder:
    """Build the model without allocating its weights."""
    with torch.device("meta"):
        return run.build()


def _layers(model: EncoderDecoder) -> dict[str, str]:
    """State whether a Transformer translates with compiled layers, and if not, why."""
    if not isinstance(model, Transformer):
        return {}
    reason = why_not_compiled(model)
    return {"layers": f"plain on a CPU: {reason}" if reason else "compiled on a CPU"}


def _objective(settings: TrainConfig) -> dict[str, str]:
    """Name the objective if it is not likelihood, and the first step with two passes."""
    if settings.objective == "likelihood":
        return {}
    start = ""
    if settings.objective in TWO_PASSES:
        start = f", two passes from step {settings.single_pass_steps + 1:,}"
    return {"objective": settings.objective + start}


def _weights_line(state: dict[str, Any]) -> dict[str, Any]:
    """Describe one set of weights."""
    counters = state.get("counters") or {}
    checksums = state.get("sha256")
    return {
        "reason": state.get("reason"),
        **({"of_steps": state["steps"]} if "steps" in state else {}),
        **({"target_tokens": counters.get("target_tokens")} if counters else {}),
        "sha256": checksums.get("model.safetensors") if isinstance(checksums, dict) else None,
    }


def _hub(record: Path) -> dict[str, Any]:
    """Name the model on the Hugging Face Hub from which the run was converted."""
    if not record.is_file():
        return {}
    content = read_json(record)
    return {"hub": {name: content.get(name) for name in ("name", "commit", "license")}}


def _health(log: Path) -> dict[str, Any]:
    """Describe the health checks of the last validation."""
    health: dict[str, str] = {}
    for line in read_entries(log):
        health = describe_all(line or {}) or health
    return {"health": health} if health else {}


def _shares(run: Run, steps: list[int]) -> dict[str, Any]:
    """List a run's running averages of token shares, such as each expert's share of the tokens."""
    described: dict[str, Any] = {}
    for family in families() if steps else ():
        for heading, name in family.token_shares.items():
            averages = read_averages(run.folder.checkpoint(steps[-1]), name)
            lines = {
                module: " ".join(f"{100 * share:.1f}" for share in shares) + " % of tokens"
                for module, shares in averages.items()
            }
            described |= {heading: lines} if lines else {}
    return described


def _version(name: str) -> str | None:
    """Return the installed version of a package, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
