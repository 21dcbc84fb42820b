"""
The training clock and protocol of `benchmarks.same_hour`; uses only the standard library.

A driver is called with the paths of two JSON files: a request, which names a task, and the answer.
It runs in the folder of its texts and names all files relative to it.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Request = dict[str, Any]
Answer = dict[str, Any]
SAVED = 60
"""Number of checkpoints of a training run, at equal intervals."""


def serve(tasks: Mapping[str, Callable[[Request], Answer]]) -> None:
    """Answer one request."""
    request, answer = map(Path, sys.argv[1:])
    wanted = json.loads(request.read_text("utf-8"))
    answer.write_text(json.dumps(tasks[wanted["task"]](wanted), ensure_ascii=False), "utf-8")


class TrainingClock:
    """
    The time of a training loop, from its first batch to the end of its minutes.

    If the request has a `rate`, in steps per second, the training ends after its `steps`, the time
    is computed from the number of steps, and checkpoints are saved. Otherwise the time is measured;
    it includes data loading, but not preparation.
    """

    def __init__(self, request: Request) -> None:
        self.seconds = 60 * float(request["minutes"])
        self.rate = float(request["rate"] or 0.0)
        self.steps = int(request["steps"])
        self.checkpoints: list[dict[str, Any]] = []
        self._started = 0.0
        self._first = self._half = self._last = (0.0, 0)

    def start(self) -> None:
        """Start at the beginning of the training loop."""
        self._started = time.monotonic()

    def tick(self, step: int) -> bool:
        """Count a finished step; return whether a checkpoint is due."""
        now = step / self.rate if self.rate else time.monotonic() - self._started
        self._last = (now, step)
        if not self._half[1] and now >= self.seconds / 2:
            self._half = self._last
        is_due = step * SAVED // self.steps > (step - 1) * SAVED // self.steps
        return self.rate > 0 and is_due

    def saved(self, path: object) -> None:
        """Record the checkpoint of the last counted step."""
        seconds, step = self._last
        self.checkpoints.append({"step": step, "minutes": seconds / 60, "path": str(path)})

    @property
    def over(self) -> bool:
        """Whether the steps or the minutes are over."""
        return self._last[1] >= self.steps if self.rate else self._last[0] >= self.seconds

    def answer(self, parameters: int, config: Mapping[str, Any]) -> Answer:
        """Describe the training; its speed is measured in its second half, if that has steps."""
        begun = self._half if self._half[1] < self._last[1] else self._first
        seconds, steps = (last - first for last, first in zip(self._last, begun, strict=True))
        return {
            "steps": self._last[1],
            "minutes": self._last[0] / 60,
            "steps_per_second": steps / max(seconds, 1e-9),
            "parameters": parameters,
            "checkpoints": self.checkpoints,
            "config": config,
        }


def learn_subwords(size: int, **options: Any) -> str:
    """Learn one sentencepiece model for both sides, once for each size; return its prefix."""
    prefix = f"subwords-{'-'.join(map(str, (size, *options.values())))}"
    if not Path(f"{prefix}.model").exists():
        import sentencepiece

        sentencepiece.SentencePieceTrainer.train(
            input="train.en,train.de",
            model_prefix=prefix,
            vocab_size=size,
            character_coverage=1.0,
            minloglevel=2,
            **options,
        )
    return prefix


def inner_parameters(model: Any, tables: tuple[str, ...]) -> int:
    """Count the parameters of a model whose names contain no word of `tables`."""
    return sum(
        weights.numel()
        for name, weights in model.named_parameters()
        if not any(table in name for table in tables)
    )


def mean_of(tensors: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Average the weights of several checkpoints; other tensors are from the last checkpoint."""
    mean = dict(tensors[-1])
    for name, last in mean.items():
        if last.is_floating_point():
            total = sum(weights[name].double() for weights in tensors)
            mean[name] = (total / len(tensors)).to(last.dtype)
    return mean
