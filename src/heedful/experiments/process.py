"""A new process for each measurement, with the same protocol for all systems."""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from heedful.errors import HeedfulError, MeasurementFailed, UserError
from heedful.machine.environment import user_environment
from heedful.plugins import load_plugins, loaded_plugins


def time_repeats(work: Callable[[], object], repeats: int) -> list[float]:
    """Time several calls of a function, in seconds."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return seconds


@contextmanager
def torch_threads(count: int) -> Iterator[int]:
    """Set torch's number of threads within a `with` statement; 0 changes nothing."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield torch.get_num_threads()
    finally:
        torch.set_num_threads(before)


def time_in_turns(
    functions: Sequence[Callable[[], object]], rounds: int, least: float = 0.0
) -> list[list[float]]:
    """
    Time functions in rounds, so a slow moment of the machine affects all of them.

    `least`: minimum seconds of one timing; faster calls are repeated. Returns, for each round, the
    seconds per call of each function; the first call warms up and is not counted.
    """
    for function in functions:
        function()
    calls = [1] * len(functions)
    if least:
        calls = [max(1, math.ceil(least / time_repeats(function, 1)[0])) for function in functions]
    return [
        [
            sum(time_repeats(function, count)) / count
            for function, count in zip(functions, calls, strict=True)
        ]
        for _ in range(rounds)
    ]


def run_process(
    command: Sequence[str | Path],
    request: Mapping[str, Any],
    foreign: bool = False,
    variables: Mapping[str, str] | None = None,
    seconds: float | None = None,
) -> dict[str, Any]:
    """
    Send a request to a new process and wait for its answer.

    Output of libraries before the answer is ignored. `foreign`: whether the process gets no
    plugins, and an environment without the variables that heedful has set. `variables`: variables
    added to the environment. `seconds`: the maximum waiting time.

    Raises `MeasurementFailed` if there is no answer, with the last line that the process wrote to
    standard error. Raises `UserError` if the process reports an invalid request.
    """
    environment = user_environment() if foreign else {**os.environ}
    if not foreign:
        request = {**request, "plugins": [str(plugin.path) for plugin in loaded_plugins()]}
    try:
        done = subprocess.run(
            [*map(str, command)],
            input=json.dumps(request),
            env=environment | {**(variables or {})},
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        raise MeasurementFailed(
            f"{' '.join(map(str, command))} must answer within {seconds:,.0f} seconds, but it did "
            "not; measure fewer tokens or lines."
        ) from error
    answer = None
    if done.returncode == 0:
        with suppress(ValueError, IndexError):  # the output is empty or not JSON
            answer = json.loads(done.stdout.strip().splitlines()[-1])
    if isinstance(answer, dict):
        if "error" not in answer:
            return answer
        is_users = answer.get("exit_code") == UserError.exit_code
        raise (UserError if is_users else MeasurementFailed)(answer["error"])
    error_lines = done.stderr.strip().splitlines()
    raise MeasurementFailed(
        f"{' '.join(map(str, command))} must answer with a JSON object, but it ended with exit "
        f"code {done.returncode}: {error_lines[-1] if error_lines else 'no message'}"
    )


def answer_request(measure: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Read a request from standard input, load its plugins, and print the result or the error."""
    request = json.load(sys.stdin)
    try:
        load_plugins(request.get("plugins"))
        print(json.dumps(measure(request)))
    except HeedfulError as error:
        print(json.dumps({"error": str(error), "exit_code": error.exit_code}))
