"""What graphs record runs under fake tensors, which refuse every look of the host at a number."""

import os
import subprocess
import sys
from functools import partial

import torch

from heedful.training.device.step import PendingResults, StepResults, compiled_calls

PROGRAM = """
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from heedful.config.model import ModelConfig
from heedful.config.train import TrainConfig
from heedful.families.build import build_model
from heedful.kernels import varlen
from heedful.training.device.optimizations import Optimizations
from heedful.training.device.packed import Room
from heedful.training.device.step import DeviceStep
from heedful.training.objective.likelihood import Likelihood
from heedful.training.optimizer import MixedPrecisionOptimizer

# the kernel of a GPU, of which fake tensors know the shapes
varlen.has_packed_kernel = lambda x: True
varlen._loaded["tiles"] = "there"
with FakeTensorMode():
    sizes = {"d_model": 32, "d_ff": 64, "heads": 2, "encoder_layers": 2, "decoder_layers": 2}
    model = build_model(ModelConfig(**sizes), 24, 24, max_length=12)
    optimizer = MixedPrecisionOptimizer(model, "bf16", TrainConfig(ema_decay=0.9))
    room = Room.of(100, 100, 20, 10)
    step = DeviceStep(model, optimizer, Likelihood(0.1), 1.0, room, Optimizations(), print)
    for positions in (model.source_positions, model.target_positions):
        positions(0, room.longest)
    for is_first in (True, False):
        step._differentiate(is_first)
    step._update()
    try:
        step._results.tolist()
    except Exception as error:
        print("refused", type(error).__name__)
print("done")
"""


COMPILED = """
import warnings

import torch

from heedful.config.model import ModelConfig
from heedful.families.build import build_model
from heedful.kernels import varlen
from heedful.kernels.api import PackedRows
from heedful.model.packed import PackedSide, packed_states

# functions whose results are cached are read as if they were not
warnings.filterwarnings("error", message=".*lru_cache.*")
# tensors without numbers go the way of a GPU's
varlen.has_packed_kernel = lambda x: True
varlen._loaded["tiles"] = object()
sizes = {"d_model": 32, "d_ff": 64, "heads": 2, "encoder_layers": 2, "decoder_layers": 2}
compiled = {}


def run(function, *arguments):
    if function not in compiled:
        compiled[function] = torch.compile(
            function, backend="aot_eager", fullgraph=True, dynamic=False
        )
    return compiled[function](*arguments)


with torch.device("meta"):
    model = build_model(ModelConfig(**sizes), 24, 24, max_length=12)
    ids = torch.zeros(1, 40, dtype=torch.long)
    rows = PackedRows(torch.zeros(6, dtype=torch.int32), 12)
    side = PackedSide(ids, ids[0], rows)
    for positions in (model.source_positions, model.target_positions):
        positions(0, 12)
states = packed_states(model, side, side, run)
states.sum().backward()
print(tuple(states.shape), len(compiled))
"""


def test_torchs_compiler_reads_every_layer_without_a_break():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COMPILED],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "(1, 40, 32) 2"


def test_nothing_in_a_graph_waits_for_the_device():
    # by functions of torch alone, as compiled ones read addresses
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "HEEDFUL_KERNELS": "plain"},
    )
    assert done.returncode == 0, done.stderr
    # a look of the host would have been refused
    assert done.stdout.split() == ["refused", "DataDependentOutputException", "done"]


def test_results_are_those_of_the_step_and_not_of_the_next_one():
    results, host = torch.tensor([1.0, 2.0, 3.0, 1.0]), torch.zeros(4)
    pending = PendingResults(results, host)
    results.zero_()
    assert pending.read() == StepResults(1.0, 2.0, 3.0, is_finite=True)


def test_every_room_may_compile_the_same_functions(monkeypatch):
    """Torch compiles a function for eight shapes at most; later epochs can need more rooms."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    for size in range(2, 13):
        assert compiled_calls()(torch.neg, torch.ones(size)).tolist() == [-1.0] * size
