"""Batch norm in place of a Transformer's layer norm (Ioffe and Szegedy 2015)."""

from collections.abc import Iterable
from typing import ClassVar

from heedful.families.family import Family
from heedful.settings.model import ModelSettings


class BatchNormFamily(Family):
    """Norms over the positions of a batch."""

    norms = ("batch",)
    traits = frozenset({"batch statistics"})
    help: ClassVar = {
        "model.norm_kind": "batch makes the sentences of a batch influence each other in training"
    }
    builder = "heedful.families.batch_norm.norm"

    def clashes(self, model: ModelSettings, memory: int) -> Iterable[str]:
        """Check that no layers share their norms, and so their running averages."""
        del memory
        # In training each use of a norm has statistics of its own, but the running averages mix
        # them. After 300 steps of a tiny model whose two layers were shared, the loss was 0.16 in
        # training mode and 0.59 in evaluation mode; with two norms it was 0.14 and 0.13.
        for side in ("encoder", "decoder"):
            numbers = model.sharing(side)
            if getattr(model, side) == "transformer" and len({*numbers}) < len(numbers):
                yield (
                    f"`model.{side}_sharing` must be empty if `model.norm_kind` is batch, because "
                    "the running averages of a norm cannot serve several layers, but got "
                    f"{getattr(model, f'{side}_sharing')}"
                )

    def training_notes(self, model: ModelSettings, ranks: int) -> Iterable[str]:
        """Note that mean and variance depend on the size of micro-batches."""
        if model.norm_kind == "batch":
            saved = "" if ranks == 1 else "; only the running averages of rank 0 are saved"
            yield (
                "batch norm: mean and variance come from each micro-batch, so the result depends "
                f"on train.micro_batch_tokens{saved}"
            )


FAMILY = BatchNormFamily()
