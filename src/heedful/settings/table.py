"""A table of settings that is checked when it is created and never changes."""

from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from heedful.settings.conditions import ActsIf
from heedful.settings.explain import setting_error


class SettingsTable(BaseModel):
    """Frozen, strictly typed settings; invalid values raise `SettingError`."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )
    table: ClassVar[str] = ""

    def __init__(self, /, **values: Any) -> None:
        """Check the values."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            prefix = f"{self.table}." if self.table else ""
            known = [name for name, _, _ in walk(type(self), prefix)]
            raise setting_error(error, self.table, known) from None

    # Pydantic calls an overridden __init__ for nested tables too, unless it is marked like this.
    # With the mark, tables are checked together, and one error lists the wrong settings of all.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


def walk(
    tables: type[BaseModel], prefix: str = "", above: tuple[ActsIf, ...] = ()
) -> Iterator[tuple[str, FieldInfo, tuple[ActsIf, ...]]]:
    """Yield every setting with its dotted name and conditions; nested tables come last."""
    inside = []
    for name, field in tables.model_fields.items():
        conditions = above + tuple(item for item in field.metadata if isinstance(item, ActsIf))
        if isinstance(field.annotation, type) and issubclass(field.annotation, SettingsTable):
            inside.append((field.annotation, f"{prefix}{name}.", conditions))
        else:
            yield f"{prefix}{name}", field, conditions
    for table in inside:
        yield from walk(*table)
