"""
The protocol between heedful and a peer toolkit; it uses only the standard library.

A peer reads a JSON object from standard input and writes another object to standard output. It
answers ``{"task": "variants", "of": "train"}`` with its variants, and ``train`` and ``translate``
with the seconds of each repetition.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Request = dict[str, Any]
Answer = dict[str, Any]


IN_FLOATS = [
    {"name": "fp32", "precision": "fp32"},
    {"name": "autocast bf16", "precision": "bf16"},
]
"""Variants of training in torch."""

COMPILED = [
    {"name": "compiled bf16", "precision": "bf16"},
    {"name": "compiled bf16 graphs", "precision": "bf16"},
]
"""Variants of training in torch on a GPU: compiled, without and with CUDA graphs."""

Variants = dict[str, list[dict[str, str]]]


def serve(
    variants: Variants,
    tasks: dict[str, Callable[[Request], Answer]],
    on_gpu: Variants | None = None,
) -> None:
    """Answer one request; `on_gpu`: variants on a GPU, for tasks whose variants differ there."""
    request = json.load(sys.stdin)
    if request["task"] == "variants":
        if request.get("device", "cpu").startswith("cuda"):
            variants = variants | (on_gpu or {})
        answer: Answer = {"variants": variants.get(request["of"], [])}
    else:
        answer = tasks[request["task"]](request)
    print(json.dumps(answer))


def time_repeatedly(work: Callable[[], object], repeats: int) -> list[float]:
    """Time several calls of a function, in seconds."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return seconds


def train_in_torch(
    request: Request,
    model: Any,
    logits: Callable[[Any, Any], Any],
    device: Any,
    versions: dict[str, str],
) -> Answer:
    """
    Take training steps: forward, cross-entropy with label smoothing, backward, AdamW.

    `logits`: a function that computes the logits from padded sources and decoder inputs.
    """
    import torch

    model.train()
    source, target_in, target_out = (torch.tensor(side, device=device) for side in sides(request))
    adam = torch.optim.AdamW(
        model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, fused=True
    )
    losses = []

    def loss_of_batch() -> Any:
        return torch.nn.functional.cross_entropy(
            logits(source, target_in).flatten(0, 1),
            target_out.flatten(),
            ignore_index=request["model"]["pad"],
            label_smoothing=request["label_smoothing"],
        )

    way = request.get("variant", "").split()
    if "compiled" in way:
        mode = "reduce-overhead" if "graphs" in way else "default"
        loss_of_batch = torch.compile(loss_of_batch, mode=mode, dynamic=False)

    def step() -> None:
        adam.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, request["precision"] == "bf16"):
            loss = loss_of_batch()
        loss.backward()
        adam.step()
        losses.append(loss.detach().clone())  # a CUDA graph overwrites the loss in the next step

    return timed_steps(request, step, losses, device) | {"versions": versions}


def timed_steps(
    request: Request, step: Callable[[], object], losses: list[float], device: Any
) -> Answer:
    """
    Time training steps after the first; every step appends to `losses`.

    On a GPU several steps are timed together: each step is launched before the previous step ends.
    """
    import torch

    at_once = request.get("steps_at_once", 1)

    def steps_to_their_end() -> None:
        for _ in range(at_once):
            step()
        if device.type == "cuda":
            torch.cuda.synchronize()

    steps_to_their_end()
    seconds = [spent / at_once for spent in time_repeatedly(steps_to_their_end, request["steps"])]
    memory = peak_memory()
    if device.type == "cuda":
        memory = torch.cuda.max_memory_allocated()
    return {"seconds": seconds, "memory": memory, "loss": float(losses[0])}


def timed_search(
    request: Request,
    translate: Callable[[list[int]], object],
    batches: list[list[int]],
    first: list[int],
    outputs: list[list[int]],
) -> Answer:
    """
    Time searches of batches, after a warm-up with the batch `first`; write the outputs.

    `memory` is that of the process; a peer that computes on a GPU must replace it.
    """
    translate(first)
    seconds = time_repeatedly(lambda: [translate(rows) for rows in batches], request["repeats"])
    memory = peak_memory()
    write_outputs(request, outputs)
    return {"seconds": seconds, "memory": memory}


def peak_memory() -> int:
    """Read the peak memory of this process in bytes."""
    for line in Path("/proc/self/status").read_text("ascii", errors="replace").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("the memory of a process is read from /proc, but there is none")


def pad_rows(rows: list[list[int]], padding: int, width: int = 0) -> list[list[int]]:
    """Pad rows to the length of the longest row, or to a width."""
    width = max(width, *map(len, rows))
    return [row + [padding] * (width - len(row)) for row in rows]


def sides(request: Request) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
    """Pad source, decoder input and targets as in heedful."""
    model = request["model"]
    pad, start, end = model["pad"], model["start_token"], model["end_token"]
    ending = [end] if model["source_end"] else []
    source = [[*row, *ending] for row in request["sources"]]
    target_in = [[start, *row] for row in request["targets"]]
    target_out = [[*row, end] for row in request["targets"]]
    return pad_rows(source, pad), pad_rows(target_in, pad), pad_rows(target_out, pad)


def source_ids(request: Request) -> list[list[int]]:
    """Read the sources of a translation, with end symbols if the model needs them."""
    model = request["model"]
    ending = [model["end_token"]] if model["source_end"] else []
    with Path(request["sources"]).open(encoding="ascii") as file:
        return [[*json.loads(line), *ending] for line in file]


def write_outputs(request: Request, outputs: list[list[int]]) -> None:
    """Write translations as token ids, without special symbols."""
    with Path(request["output"]).open("w", encoding="ascii") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in outputs)


# What peers compute alike: positions that are added to embeddings, and the paper's settings.
POSITIONS = ("interleaved", "halves", "grouped", "learned")
PAPER: dict[str, Any] = {
    "norm": "post",
    "norm_kind": "layer",
    "embedding_norm": False,
    "residuals": True,
    "causal_mask": True,
    "gated": False,
    "tie_embeddings": "all",
    "output_bias": False,
    "scale_embeddings": True,
    "scale_output": False,
    "encoder_sharing": "",
    "decoder_sharing": "",
    "attention.encoder": "attention",
    "attention.decoder": "attention",
    "attention.score": "scaled",
    "attention.qk_norm": "none",
    "attention.dropout": 0.0,
    "experts.count": None,
    **dict.fromkeys(("encoder_norm", "decoder_norm", "encoder_heads", "decoder_heads")),
    **dict.fromkeys(("encoder_d_ff", "decoder_d_ff", "d_k", "d_v")),
    **dict.fromkeys(("attention.kv_heads", "attention.window")),
}


def only_paper_shape(model: dict[str, Any]) -> None:
    """Refuse model settings that the peer does not support."""
    families = {"encoder": "transformer", "decoder": "transformer"}
    if any(model[side] != family for side, family in families.items()):
        raise SystemExit("the peer measures only Transformers, but the request has another model")
    attention = {f"attention.{name}": value for name, value in model["attention"].items()}
    # the table of a family is missing if the family was removed
    experts = {"experts.count": model.get("experts", {}).get("count")}
    settings = {**model, **attention, **experts}
    different = {
        name: settings[name] for name, value in PAPER.items() if settings.get(name, value) != value
    }
    if model["positions"] not in POSITIONS:
        different["positions"] = model["positions"]
    if different:
        raise SystemExit(
            f"the peer measures only models with the paper's settings, but the request has "
            f"{different}"
        )
