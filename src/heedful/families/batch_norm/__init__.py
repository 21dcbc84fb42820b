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

    def training_notes(self, model: ModelSettings, ranks: int) -> Iterable[str]:
        """Note that mean and variance depend on the size of micro-batches."""
        if model.norm_kind == "batch":
            saved = "" if ranks == 1 else "; only the running averages of rank 0 are saved"
            yield (
                "batch norm: mean and variance come from each micro-batch, so the result depends "
                f"on train.micro_batch_tokens{saved}"
            )


FAMILY = BatchNormFamily()
