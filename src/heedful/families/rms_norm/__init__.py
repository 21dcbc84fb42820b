"""Normalization by the root mean square in place of layer norm (Zhang and Sennrich 2019)."""

from typing import ClassVar

from heedful.families.family import Family


class RmsNormFamily(Family):
    """Norms without mean and bias."""

    norms = ("rms",)
    help: ClassVar = {"model.norm_kind": "rms divides by the root mean square"}
    builder = "heedful.families.rms_norm.norm"


FAMILY = RmsNormFamily()
