"""
Adam (section 5.3) or SGD with fp32 master weights.

In fp32 the model's parameters are the master weights. In bf16 the model computes with a bf16 copy
of the master weights. Gradients of all micro-batches are summed in fp32, the optimizer updates the
master weights, and each step ends with a new copy. Checkpoints do not contain the bf16 copy.

A moving average is an additional set of weights, which is validated, saved and used for
translation. The master weights are then stored with the optimizer's moments, because only training
needs them.

Adam has two moments for each weight, SGD with momentum has one, and SGD without momentum has none.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw
from torch.optim.sgd import sgd

from heedful.kernels.api import approach_all, copy_all, fused_scaling, scale_all
from heedful.model.weights import running_averages

if TYPE_CHECKING:
    from heedful.config.train import TrainConfig

# Names of the moments in a checkpoint, for Adam and for SGD with momentum.
_ADAM = ("first", "second")
_MOMENTUM = ("momentum",)


class MixedPrecisionOptimizer:
    """
    Adam or SGD with fp32 master weights, using torch's fused kernels.

    The parameters of the model must be fp32; in bf16 they are replaced by rounded copies. Tied
    weights are one parameter and are counted, updated and saved once. The kernels are called as
    functions, because torch's classes import its compiler, which takes more than a second. AdamW
    without decay is Adam. With `ema_decay` the masters have an exponential moving average. The
    paper has neither a moving average nor weight decay.
    """

    def __init__(self, model: nn.Module, precision: str, settings: "TrainConfig") -> None:
        self.settings = settings
        self.names = [name for name, _ in model.named_parameters()]
        self.model_parameters: list[Tensor] = [
            parameter for _, parameter in model.named_parameters()
        ]
        self.running_averages = running_averages(model)
        self.masters = self.model_parameters
        if precision == "bf16":
            self.masters = [parameter.detach().clone() for parameter in self.model_parameters]
            for parameter in self.model_parameters:
                parameter.data = parameter.data.to(torch.bfloat16)
            average_ids = {id(average) for average in self.running_averages.values()}
            for buffer in model.buffers():
                # running averages stay fp32, because their updates are too small for bf16
                if id(buffer) not in average_ids and buffer.is_floating_point():
                    buffer.data = buffer.data.to(torch.bfloat16)
        # A GPU converts all weights in one kernel; a CPU converts one at a time to save memory.
        self._converts_together = not self.masters[0].is_cpu
        self.zero_grad()
        self.steps = 0
        self.averages: list[Tensor] = []
        if settings.ema_decay is not None:
            self.averages = [master.detach().clone() for master in self.masters]
        kinds = _ADAM if settings.optimizer == "adam" else _MOMENTUM if settings.momentum else ()
        # The moments are allocated here, so that a lack of memory is found before the first step.
        self._moments = {
            kind: [torch.zeros_like(master) for master in self.masters] for kind in kinds
        }
        self._counters = self._count(0)

    @property
    def moment_kinds(self) -> tuple[str, ...]:
        """Names of the moments of each weight: first and second, or momentum, or no names."""
        return tuple(self._moments)

    @property
    def gradients(self) -> list[Tensor]:
        """
        The fp32 gradients since the last step, in the order of `names`, for the sum over ranks.

        Every gradient is a tensor: a rank without a micro-batch contributes zeros.
        """
        gradients = []
        for master in self.masters:
            if master.grad is None:
                master.grad = torch.zeros_like(master)
            gradients.append(master.grad)
        return gradients

    def accumulate_gradients(self) -> None:
        """Add the gradients of a backward pass to the sums, as torch itself does in fp32."""
        if not self.has_working_copy:
            return
        if self._converts_together and self._accumulate_at_once():
            return
        for master, parameter in zip(self.masters, self.model_parameters, strict=True):
            if parameter.grad is None:
                continue
            # conversion before addition is four times as fast as adding bf16 to fp32 directly
            gradient = parameter.grad.float()
            parameter.grad = None
            if master.grad is None:
                master.grad = gradient
            else:
                master.grad += gradient

    def _accumulate_at_once(self) -> bool:
        """Convert the first gradients of a step together; return False for later gradients."""
        pairs = [
            (master, parameter.grad)
            for master, parameter in zip(self.masters, self.model_parameters, strict=True)
            if parameter.grad is not None
        ]
        if any(master.grad is not None for master, _ in pairs):
            return False
        sums = [torch.empty_like(master) for master, _ in pairs]
        copy_all(sums, [gradient for _, gradient in pairs])
        for (master, _), total in zip(pairs, sums, strict=True):
            master.grad = total
        for parameter in self.model_parameters:
            parameter.grad = None
        return True

    def gradient_norm(self) -> float:
        """Compute the Euclidean norm of the summed gradients; not finite if any gradient is not."""
        return float(nn.utils.get_total_norm(self.gradients))

    @property
    def has_working_copy(self) -> bool:
        """Whether the model computes with rounded copies of the weights, as in bf16."""
        return self.masters is not self.model_parameters

    def step(self, learning_rate: float, scale: float) -> None:
        """
        Update the weights, and reset the summed gradients.

        `scale`: factor of the summed gradients: 1 / target tokens of the batch, or a smaller factor
        to clip. torch scales the gradients during the update.
        """
        with torch.no_grad():
            if self.settings.optimizer == "adam":
                scaling = fused_scaling("adamw", self.gradients, scale)
                self._step_of_adam(learning_rate, scaling)
            else:
                scaling = fused_scaling("sgd", self.gradients, scale)
                self._step_of_sgd(learning_rate, scaling)
        self.steps += 1
        self.zero_grad()
        self._average()
        self._copy()

    def apply_on_device(
        self,
        gradients: list[Tensor],
        divisor: Tensor,
        learning_rate: Tensor,
        share: Tensor,
        skips: Tensor,
    ) -> None:
        """
        Update the weights by Adam with all values on the device, for use in a CUDA graph.

        `gradients`: sums, which are divided by `divisor`. `share`: `averaged_share` of this step.
        `skips`: 1 to leave all weights unchanged, else 0. The caller increments `steps`.
        """
        scaling = {"grad_scale": divisor, "found_inf": skips}
        self._step_of_adam(learning_rate, scaling, gradients)
        if self.averages:
            share = share * (1.0 - skips)
            for average, master in zip(self.averages, self.masters, strict=True):
                average.lerp_(master, share)
        self._copy()

    @property
    def averaged_share(self) -> float:
        """Factor of the latest weights in the moving average; largest in the first steps."""
        if self.settings.ema_decay is None:
            return 0.0
        return 1.0 - min(self.settings.ema_decay, self.steps / (self.steps + 9.0))

    def _step_of_adam(
        self,
        learning_rate: float | Tensor,
        scaling: dict[str, Any],
        gradients: list[Tensor] | None = None,
    ) -> None:
        """Update the masters by AdamW, which is Adam if there is no weight decay."""
        gradients = self.gradients if gradients is None else gradients
        adamw(
            *(self.masters, gradients, self._moments["first"], self._moments["second"]),
            *([], self._counters),
            fused=True,
            **scaling,
            amsgrad=False,
            beta1=self.settings.beta1,
            beta2=self.settings.beta2,
            lr=learning_rate,
            weight_decay=self.settings.weight_decay,
            eps=self.settings.epsilon,
            maximize=False,
        )

    def _step_of_sgd(self, learning_rate: float, scaling: dict[str, Any]) -> None:
        """Update the masters by SGD."""
        if self.settings.weight_decay:  # torch would add the decay to the momentum
            scale_all(self.masters, 1.0 - learning_rate * self.settings.weight_decay)
        none = [None] * len(self.masters)
        momentum: list[Tensor | None] = [*self._moments.get("momentum", none)]
        sgd(
            *(self.masters, self.gradients, momentum),
            fused=True,
            **scaling,
            weight_decay=0.0,
            momentum=self.settings.momentum,
            lr=learning_rate,
            dampening=0.0,
            nesterov=self.settings.nesterov,
            maximize=False,
        )

    def zero_grad(self) -> None:
        """Set the summed gradients to None; the next backward pass then need not add to zeros."""
        for master in self.masters:
            master.grad = None

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """Within the context, give the model the weights that a checkpoint would contain."""
        if self.averages:
            self._exchange()
        try:
            yield
        finally:
            if self.averages:
                self._exchange()

    def weights(self) -> dict[str, Tensor]:
        """
        Return the fp32 weights for `model.safetensors` by name, detached but not copied.

        They are the moving averages or, without them, the master weights. The running averages of
        batch norm are included; they belong to the latest weights.
        """
        used = self.averages or self.masters
        saved = {name: weight.detach() for name, weight in zip(self.names, used, strict=True)}
        return saved | self.running_averages

    def moments(self) -> dict[str, Tensor]:
        """
        Return the state that only training needs, for `training.safetensors`.

        The names are ``first.NAME`` and ``second.NAME``, or ``momentum.NAME``; with a moving
        average also ``master.NAME``. Adam's counter is not included: it equals the step number,
        plus the pretrained run's steps if its optimizer was kept.
        """
        moments = {}
        if self.averages:
            for name, master in zip(self.names, self.masters, strict=True):
                moments[f"master.{name}"] = master.detach()
        for kind, tensors in self._moments.items():
            moments |= {
                f"{kind}.{name}": tensor for name, tensor in zip(self.names, tensors, strict=True)
            }
        return moments

    def load(self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], step: int) -> None:
        """Continue from a checkpoint, bit for bit; if `moments` is empty, they start at zero."""
        with torch.no_grad():
            for name, average in self.running_averages.items():
                average.copy_(weights[name])
            for index, (name, master) in enumerate(zip(self.names, self.masters, strict=True)):
                master.copy_(moments.get(f"master.{name}", weights[name]))
                if self.averages:
                    self.averages[index].copy_(weights[name])
                if moments:
                    for kind, tensors in self._moments.items():
                        tensors[index].copy_(moments[f"{kind}.{name}"])
        if moments:
            self._counters = self._count(step)
        self.steps = step
        self._copy()

    def _count(self, step: int) -> list[Tensor]:
        """Create Adam's step counters, one per weight, set to `step`."""
        if self.settings.optimizer != "adam":
            return []
        return [torch.tensor(float(step), device=master.device) for master in self.masters]

    @torch.no_grad()
    def _average(self) -> None:
        """Update the moving averages."""
        if self.settings.ema_decay is None:
            return
        approach_all(self.averages, self.masters, self.averaged_share)

    def _exchange(self) -> None:
        """Swap masters and averages, also in the model."""
        for index, master in enumerate(self.masters):
            master.data, self.averages[index] = self.averages[index], master.data
        self._copy()

    @torch.no_grad()
    def _copy(self) -> None:
        """Round the masters into the weights that the model computes with."""
        if self.has_working_copy:
            copy_all(self.model_parameters, self.masters)
