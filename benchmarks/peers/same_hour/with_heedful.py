"""heedful in `benchmarks.same_hour`: its commands, as a user types them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import clock

NEVER = 10**9


def train(request: clock.Request) -> clock.Answer:
    """Train with the recipe `multi30k`; heedful measures the time itself, or takes given steps."""
    out, settings = Path(request["out"]), build_settings(request)
    files = ("--source", "train.en", "--target", "train.de")
    changes = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    heedful("train", "multi30k", *files, "--out", out, *changes)
    log = [json.loads(line) for line in (out / "log.jsonl").read_text("utf-8").splitlines()]
    rate = request["rate"]
    points = [
        (line["step"] / rate if rate else line["seconds"], line["step"])
        for line in log
        if "target_tokens" in line
    ]
    points = [(0.0, 0), *points]
    seconds, steps = points[-1]
    begun = max((point for point in points[:-1] if point[0] <= seconds / 2), default=(0.0, 0))
    model = json.loads(heedful("info", out, "--json"))
    return {
        "steps": steps,
        "minutes": seconds / 60,
        "steps_per_second": (steps - begun[1]) / max(seconds - begun[0], 1e-9),
        "parameters": _inner_parameters(out) if rate else model["parameters"],
        "checkpoints": _checkpoints(out, rate) if rate else [],
        "config": settings,
    }


def build_settings(request: clock.Request) -> dict[str, Any]:
    """Convert settings to heedful's format."""
    size, steps = request["size"], request["steps"]
    if request["rate"]:
        length = {"train.checkpoint_steps": -(-steps // clock.SAVED)}
    else:
        length = {"train.checkpoint_steps": NEVER, "train.minutes": request["minutes"]}
    return {
        **request["settings"],
        "model.d_model": size["width"],
        "model.d_ff": size["inner"],
        "model.heads": size["heads"],
        "model.encoder_layers": size["layers"],
        "model.decoder_layers": size["layers"],
        "train.warmup": request["warmup"],
        **length,
        "train.steps": steps,
        "train.checkpoint_minutes": "none",
        "train.keep_last": 2 * clock.SAVED,
        "train.precision": request["precision"],
        "train.threads": request["threads"],
        "train.seed": request["seed"],
    }


def _checkpoints(out: Path, rate: float) -> list[dict[str, Any]]:
    """List the checkpoints with their times, which are computed from the steps per second."""
    checkpoints = []
    for folder in sorted((out / "checkpoints").iterdir()):
        counters = json.loads((folder / "state.json").read_text("utf-8"))["counters"]
        minutes = counters["step"] / rate / 60
        checkpoints.append({"step": counters["step"], "minutes": minutes, "path": str(folder)})
    return checkpoints


def _inner_parameters(out: Path) -> int:
    """Count the parameters without the embedding tables."""
    from safetensors import safe_open

    last = sorted((out / "checkpoints").iterdir())[-1]
    with safe_open(last / "model.safetensors", "numpy") as tensors:
        names = [name for name in tensors.keys() if "embed" not in name]  # noqa: SIM118
        return sum(tensors.get_tensor(name).size for name in names)


def average(request: clock.Request) -> clock.Answer:
    """Average the last checkpoints."""
    heedful("average", request["out"], "--last", len(request["checkpoints"]))
    return {}


def translate(request: clock.Request) -> clock.Answer:
    """Translate a text with each checkpoint."""
    for checkpoint, output in request["jobs"]:
        name = Path(checkpoint).name
        weights = "average" if name == "average" else f"step-{int(name.removeprefix('step-'))}"
        places = ("--input", request["source"], "--output", output, "--weights", weights)
        options = ("--beam", request["beam"], "--precision", "fp32")
        heedful("translate", request["out"], *places, *options)
    return {}


def heedful(*words: object) -> str:
    """Run a command."""
    line = [sys.executable, "-m", "heedful", *map(str, words)]
    return subprocess.run(line, check=True, encoding="utf-8", stdout=subprocess.PIPE).stdout


if __name__ == "__main__":
    clock.serve({"train": train, "average": average, "translate": translate})
