"""The settings of rotary positions."""

from typing import Annotated, ClassVar

from pydantic import Field

from heedful.settings.conditions import ActsIf
from heedful.settings.table import SettingsTable

NAME = "rotary"
ROTARY = ActsIf("model.positions", (NAME,))


class RotarySettings(SettingsTable):
    """Rotary positions."""

    table: ClassVar[str] = "model.rotary"

    base: Annotated[float, Field(gt=1.0, le=1e12)] = 10000.0
    """Base of the angles: component pair j of h rotates by base^(-j/h) radians per position."""
