"""The settings of buckets of distances."""

from typing import Annotated, ClassVar

from pydantic import Field

from heedful.settings.conditions import ActsIf
from heedful.settings.table import SettingsTable

NAME = "relative-buckets"
BUCKETS = ActsIf("model.positions", (NAME,))


class BucketSettings(SettingsTable):
    """Buckets of distances, as in T5."""

    table: ClassVar[str] = "model.relative_buckets"

    count: Annotated[int, Field(ge=4, le=100_000)] = 32
    """Number of buckets; in an encoder, half of them are for keys after the query."""
    max_distance: Annotated[int, Field(ge=3, le=1_000_000)] = 128
    """Keys at this distance or farther on the same side of the query share a bucket."""
