"""
The worker process that encodes shards.

`heedful.data.encoded.worker_pool` starts it, and it reads jobs from its standard input. The first
line is JSON with the tokenizer's folder and the limits to use. Each shard then takes two lines:
JSON with the name of the file to write, and the shard itself. The process answers each job with a
line of JSON: an empty object, or the error. Only text goes in and out; torch is never loaded.
"""

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from heedful.data.cleaning.filter import PairFilter
from heedful.data.encoded.shards import Shard, encode_shard
from heedful.errors import HeedfulError
from heedful.tokenization.tokenizer import Tokenizer


def main() -> None:
    """Process jobs until standard input ends."""
    # Output of libraries must not mix with the answers, so standard output is redirected to
    # standard error. When the parent process ends, standard input ends and so does this process.
    jobs = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        _answer(jobs, answers)
    except BrokenPipeError:
        os._exit(1)  # the parent is gone: exit without flushing


def _answer(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Process one job after another."""
    setup = json.loads(jobs.readline())
    encode = None
    for job in jobs:
        answer: dict[str, Any] = {}
        try:
            if encode is None:
                tokenizer = Tokenizer.load(Path(setup["tokenizer"]))
                pair_filter = PairFilter(**setup["filter"])
                encode = partial(encode_shard, tokenizer=tokenizer, pair_filter=pair_filter)
            encode(Shard.unpack(jobs.readline()), path=Path(json.loads(job)["path"]))
        except HeedfulError as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        except OSError as error:
            answer = {"error": "OSError", "number": error.errno, "message": error.strerror}
        except MemoryError:
            answer = {"error": "MemoryError"}
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()
