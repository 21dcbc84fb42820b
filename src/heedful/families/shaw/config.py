"""The settings of relative position vectors."""

from typing import Annotated, ClassVar

from pydantic import Field

from heedful.settings.conditions import ActsIf
from heedful.settings.table import SettingsTable

NAME = "shaw"
SHAW = ActsIf("model.positions", (NAME,))


class ShawSettings(SettingsTable):
    """Relative position vectors, as in Shaw et al. 2018."""

    table: ClassVar[str] = "model.shaw"

    max_distance: Annotated[int, Field(ge=1, le=100_000)] = 16
    """Keys at this distance or farther share one vector before the query and another after it."""
