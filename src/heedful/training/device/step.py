"""
A training step as recorded CUDA graphs: losses and gradients, and the update.

::

    host      pack ── copy ── replay ── replay ── copy results ── read the previous step's results
    device             copy ── losses, gradients ── norm, check, Adam, rounded copies

The host does not wait within a step. The device checks whether loss and gradients are finite. From
the first failed check on, updates change nothing; the host reads the failure one step later. So
weights and moments keep their values from before the failed step.
"""

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from heedful.kernels.api import Graph, copy_all, has_packed_kernel, masked_loss
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.packed import call, packed_states
from heedful.training.device.buffers import Buffers, Slot
from heedful.training.device.optimizations import Optimizations
from heedful.training.device.packed import Room
from heedful.training.objective.likelihood import Likelihood
from heedful.training.optimizer import MixedPrecisionOptimizer

# Maximum number of steps whose results are copied to the host at the same time.
_READS = 4


class StepResults(NamedTuple):
    """The results of a step on the device, apart from the weights."""

    loss: float
    nll: float
    """Sums over target tokens."""
    norm: float
    """Norm of the mean gradient before clipping."""
    is_finite: bool
    """Whether loss and gradients are finite in this step and all earlier steps."""


class PendingResults:
    """The results of a step while they are copied to the host."""

    def __init__(self, results: Tensor, host: Tensor) -> None:
        self._host = host
        host.copy_(results, non_blocking=True)
        self._arrived = torch.cuda.Event() if results.is_cuda else None
        if self._arrived is not None:
            self._arrived.record(torch.cuda.current_stream(results.device))
        else:
            self._host = results.clone()

    def read(self) -> StepResults:
        """Wait for the step, and return its results."""
        if self._arrived is not None:
            self._arrived.synchronize()
        loss, nll, norm, is_finite = self._host.tolist()
        return StepResults(loss, nll, norm, is_finite == 1.0)


class DeviceStep:
    """
    Training steps with tensors of fixed size.

    `clip_norm`: maximum norm of the mean gradient; None for no limit. `say`: receives messages for
    the log, such as a failure of the compiler.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        optimizer: MixedPrecisionOptimizer,
        objective: Likelihood,
        clip_norm: float | None,
        room: Room,
        optimizations: Optimizations,
        say: Callable[[str], object],
    ) -> None:
        self.model, self.optimizer, self.objective = model, optimizer, objective
        self.device, self.clip_norm = model.device, clip_norm
        self.buffers = Buffers(room, self.device)
        has_packed_kernel(optimizer.model_parameters[0])  # its imports cannot be compiled
        self._graphs_on = self.device if optimizations.graphs else torch.device("cpu")
        self._run = (
            compiled_calls() if optimizations.compiled and self.device.type == "cuda" else None
        )
        self._say = say
        new = functools.partial(torch.zeros, dtype=torch.float32, device=self.device)
        self._sums, self._results = new(2), new(4)  # (loss, nll) and (loss, nll, norm, flag)
        self._inputs = new(3)  # target tokens, learning rate, share of a moving average
        self._is_finite, self._skips = new(()).fill_(1.0), new(())
        self._totals = [torch.zeros_like(master) for master in optimizer.masters]
        is_cuda = self.device.type == "cuda"
        self._hosts = [torch.zeros(4, pin_memory=is_cuda) for _ in range(_READS)]
        self._host_inputs = [torch.zeros(3, pin_memory=is_cuda) for _ in range(_READS)]
        self._count = 0
        self._graphs: dict[str, Graph] = {}
        self._tables: list[Tensor] = []  # positional encodings, kept alive for the graphs

    def prepare(self, slot: Slot, parts: int) -> None:
        """
        Record the graphs with a first micro-batch in the buffers, without changing weights.

        `parts`: number of micro-batches of a step. The first micro-batch has its own graph; the
        others share a second graph.
        """
        needed = {"first", "update", *(["more"] if parts > 1 else [])}
        if needed <= self._graphs.keys():
            return
        slot.copy_to(self.buffers.tensors)
        # compute positional tables that are long enough before recording, since graphs cannot
        # replace them; graphs read these tables even after the model has replaced them for longer
        # text
        sides = (self.model.source_positions, self.model.target_positions)
        longest = self.buffers.room.longest
        self._tables += [part(0, longest).detach() for part in sides if part is not None]
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            if "first" not in self._graphs:
                self._record_first()
            if parts > 1 and "more" not in self._graphs:
                self._graphs["more"] = self._graph(functools.partial(self._differentiate, False))
            if "update" not in self._graphs:
                # the flag is 0, so the runs that record the graph change no weights
                before = self._is_finite.clone()
                self._is_finite.zero_()
                self._graphs["update"] = self._graph(self._update)
                self._is_finite.copy_(before)
        for parameter in self.optimizer.model_parameters:
            if self.optimizer.has_working_copy:
                parameter.grad = None

    def take(
        self,
        slots: Sequence[Slot],
        seed: Callable[[int], None],
        target_tokens: int,
        learning_rate: float,
    ) -> PendingResults:
        """
        Start a step; return its results, which can be read later.

        `slots`: the micro-batches. `seed`: called with the index of each micro-batch to seed its
        dropout.
        """
        self.prepare(slots[0], len(slots))
        for number, slot in enumerate(slots):
            self.buffers.load(slot)
            seed(number)
            self._graphs["more" if number else "first"].replay()
        self.optimizer.steps += 1
        place = self._count % _READS
        self._count += 1
        inputs = self._host_inputs[place]
        inputs.copy_(torch.tensor([target_tokens, learning_rate, self.optimizer.averaged_share]))
        self._inputs.copy_(inputs, non_blocking=True)
        self._graphs["update"].replay()
        return PendingResults(self._results, self._hosts[place])

    def _record_first(self) -> None:
        """Record losses and gradients; if the compiler fails, record them without the compiler."""
        work = functools.partial(self._differentiate, True)
        try:
            self._graphs["first"] = self._graph(work)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # the compiler raises several kinds of errors
            if self._run is None:
                raise
            reason = str(error).strip().partition("\n")[0]
            self._say(f"torch's compiler failed, so layers are not compiled: {reason}")
            self._run = None
            self._graphs["first"] = self._graph(work)

    def _graph(self, work: Callable[[], object]) -> Graph:
        """Record a function as a graph; all graphs of a step share their memory."""
        pool = next((graph.pool for graph in self._graphs.values()), None)
        return Graph(work, self._graphs_on, pool)

    def _differentiate(self, is_first: bool) -> None:
        """Compute losses and gradients of the micro-batch in the buffers, and add them up."""
        optimizer, model, objective = self.optimizer, self.model, self.objective
        if optimizer.has_working_copy:
            for parameter in optimizer.model_parameters:
                parameter.grad = None
        else:
            if is_first:
                for total in self._totals:
                    total.zero_()
            for parameter, total in zip(optimizer.masters, self._totals, strict=True):
                parameter.grad = total
        tensors, sides = self.buffers.tensors, self.buffers.sides
        states = packed_states(model, *sides, self._run or call)  # (1, tokens, d_model)
        loss, nll = masked_loss(
            states[0],
            tensors["target_out"],
            tensors["counts"],
            model.output.weight,
            model.output.bias,
            objective.smoothing,
            objective.form,
        )
        if objective.weight != 1.0:
            loss = objective.weight * loss
        loss.backward()
        both = torch.stack((loss.detach(), nll))
        if is_first:
            self._sums.copy_(both)
        else:
            self._sums.add_(both)
        if optimizer.has_working_copy:
            self._accumulate(is_first)

    def _accumulate(self, is_first: bool) -> None:
        """Add the gradients of the rounded weights to the sums in fp32."""
        both = [
            (total, parameter.grad)
            for total, parameter in zip(self._totals, self.optimizer.model_parameters, strict=True)
            if parameter.grad is not None
        ]
        if is_first:
            copy_all([total for total, _ in both], [gradient for _, gradient in both])
        else:
            for total, gradient in both:
                total.add_(gradient)

    @torch.no_grad()
    def _update(self) -> None:
        """Update the weights if the sums of this step and all earlier steps are finite."""
        tokens, rate, share = self._inputs
        loss = self._sums[0]
        norm = nn.utils.get_total_norm(self._totals) / tokens
        is_finite = torch.isfinite(norm) & torch.isfinite(loss)
        self._is_finite.mul_(is_finite)
        self._skips.copy_(1.0 - self._is_finite)
        divisor = tokens
        if self.clip_norm is not None:
            divisor = tokens * torch.clamp(norm / self.clip_norm, min=1.0)
        self.optimizer.apply_on_device(self._totals, divisor, rate, share, self._skips)
        self._results[:2] = self._sums
        self._results[2] = norm
        self._results[3] = self._is_finite


def compiled_calls() -> Callable[..., Any]:
    """Return a function that calls other functions, each compiled once by torch."""
    # without a reset, compilations for other sizes would count toward the limit of each function
    torch.compiler.reset()
    translated: dict[Any, Callable[..., Any]] = {}

    def run(function: Callable[..., Any], *arguments: Any) -> Any:
        if function not in translated:
            translated[function] = torch.compile(function, fullgraph=True, dynamic=False)
        with warnings.catch_warnings():  # warnings about the compiler's own code
            warnings.simplefilter("ignore")
            return translated[function](*arguments)

    return run
