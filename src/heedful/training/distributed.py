"""
Data-parallel training under `torchrun`.

Each rank computes its share of the micro-batches of a step. Gradients and counts are summed over
all ranks, and every rank takes the same step. The model is not wrapped in torch's
`DistributedDataParallel`; the sums are computed once per step. So a rank may have no micro-batch,
and the arithmetic is the same as in a single process.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from heedful.errors import SettingError, TrainingFailed
from heedful.kernels.api import copy_all

# A rank that dies closes its connections, which the other ranks notice at once. The timeout is for
# a rank that hangs. It must be longer than any task that only rank zero performs, such as
# validation.
_TIMEOUT = timedelta(hours=6)
# Larger buckets need fewer messages, but more memory for their copies. The size was chosen by hand.
_BUCKET_BYTES = 64 << 20
# For each launcher: the variable with the number of processes, the launcher's name, and the
# variable with the rank. Both variables must be set. SLURM_NTASKS and SLURM_PROCID are also set in
# the single process of a batch script; the step's number of tasks is that of `srun`.
_LAUNCHERS = {
    "SLURM_STEP_NUM_TASKS": ("srun", "SLURM_PROCID"),
    "OMPI_COMM_WORLD_SIZE": ("mpirun", "OMPI_COMM_WORLD_RANK"),
    "PMI_SIZE": ("mpiexec", "PMI_RANK"),
    "MV2_COMM_WORLD_SIZE": ("mpirun", "MV2_COMM_WORLD_RANK"),
}
_OF_A_JOB = ("RANK", "MASTER_ADDR", "MASTER_PORT")
# A process may train several times. Each group needs its own keys in the launcher's store, because
# the addresses of earlier groups remain there.
_numbers = count()


@dataclass(frozen=True)
class RankGroup:
    """The group of training processes, with the rank of this process."""

    rank: int = 0
    """Rank of this process."""
    world: int = 1
    """Number of processes."""

    @property
    def is_first(self) -> bool:
        """Whether this is rank zero, which writes files and messages."""
        return self.rank == 0

    def all_reduce(self, values: Tensor) -> Tensor:
        """Sum a tensor over all ranks in place; raises `TrainingFailed` if a rank has ended."""
        if self.world > 1:
            with _peer_failures():
                dist.all_reduce(values)
        return values

    def all_reduce_gradients(self, tensors: Sequence[Tensor]) -> None:
        """Sum many tensors over all ranks, in place."""
        if self.world == 1:
            return
        for bucket in _buckets(tensors):
            flat = self.all_reduce(torch.cat([tensor.reshape(-1) for tensor in bucket]))
            parts = flat.split([tensor.numel() for tensor in bucket])
            copy_all(list(bucket), [p.view_as(t) for p, t in zip(parts, bucket, strict=True)])

    def broadcast(self, value: float) -> float:
        """Send a number from rank zero to all ranks, as a sum to which other ranks add zero."""
        return float(
            self.all_reduce(torch.tensor(value if self.is_first else 0.0, dtype=torch.float64))
        )

    def barrier(self) -> None:
        """Wait for all ranks; afterwards they can read the files that rank zero has written."""
        # `dist.barrier` needs the GPU with NCCL, and has no clear message if a process has ended.
        self.all_reduce(torch.zeros(()))


@contextmanager
def rank_group(device: torch.device) -> Iterator[RankGroup]:
    """
    Join the process group that `torchrun` started.

    `torchrun` ends all processes when one dies; processes that wait for the dead process report its
    failure first.
    """
    refuse_separate_processes(os.environ)
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield RankGroup()
        return
    # Small tensors on the CPU are sent by gloo, even if gradients are sent by NCCL.
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    store, rank, world = next(rendezvous("env://", timeout=_TIMEOUT))
    store = PrefixStore(f"training {next(_numbers)}", store)
    dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=_TIMEOUT)
    try:
        yield RankGroup(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()


def refuse_separate_processes(environment: Mapping[str, str]) -> None:
    """Refuse processes of a launcher that did not set up a common process group."""
    world = environment.get("WORLD_SIZE")
    if world is None:
        for name, (launcher, number) in _LAUNCHERS.items():
            count = environment.get(name, "") if number in environment else ""
            if count.isdecimal() and int(count) > 1:
                raise SettingError(
                    f"several processes must train one run together, but {launcher} started "
                    f"{count} independent processes ({name}={count}). Let it start `torchrun "
                    "--nproc-per-node N -m heedful train ...` once on each machine; or set "
                    "WORLD_SIZE=1 to train with this process alone."
                )
        return
    if not (world.isdecimal() and int(world) > 0):
        raise SettingError(f"WORLD_SIZE must be a number of processes, but is {world!r}.")
    missing = [name for name in _OF_A_JOB if name not in environment]
    if int(world) > 1 and missing:
        raise SettingError(
            f"WORLD_SIZE={world} must come with RANK, MASTER_ADDR and MASTER_PORT, but the "
            f"environment lacks {', '.join(missing)}. Start the processes with torchrun, which "
            "sets them all, or leave WORLD_SIZE out."
        )


@contextmanager
def _peer_failures() -> Iterator[None]:
    """Convert a communication error to a message that another process has ended."""
    try:
        yield
    except RuntimeError as error:
        first_line = str(error).strip().splitlines()[0]
        raise TrainingFailed(
            "every rank must join in each step, but another process of this run is gone or "
            f"does not answer ({first_line}). The output of that process says why; start all "
            "ranks again with --resume to continue from the last checkpoint."
        ) from error


def _buckets(tensors: Sequence[Tensor]) -> Iterator[Sequence[Tensor]]:
    """Group consecutive tensors into buckets of about 64 MiB."""
    bucket: list[Tensor] = []
    size = 0
    for tensor in tensors:
        bucket.append(tensor)
        size += tensor.numel() * tensor.element_size()
        if size >= _BUCKET_BYTES:
            yield bucket
            bucket, size = [], 0
    if bucket:
        yield bucket
