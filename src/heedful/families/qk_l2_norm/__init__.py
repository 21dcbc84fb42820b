"""Queries and keys with an L2 norm of one in each head, and a learned scale (Henry et al. 2020)."""

from collections.abc import Iterable
from typing import ClassVar

from heedful.families.family import Family
from heedful.settings.model import ModelSettings

NAME = "l2"


class QkL2NormFamily(Family):
    """Normalization of queries and keys by their L2 norm."""

    qk_norms = (NAME,)
    help: ClassVar = {
        "model.attention.qk_norm": f"{NAME} divides by the L2 norm and learns a scale"
    }
    builder = "heedful.families.qk_l2_norm.norm"

    def clashes(self, model: ModelSettings, memory: int) -> Iterable[str]:
        """Check that scores are scaled dot products, for which the initial scale was chosen."""
        del memory
        if model.attention.score != "scaled":
            yield (
                f"`model.attention.score` must be scaled if `model.attention.qk_norm` is {NAME}, "
                f"which learns the scale of products, but got {model.attention.score}"
            )


FAMILY = QkL2NormFamily()
