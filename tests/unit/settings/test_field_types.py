import pytest
from pydantic import TypeAdapter, ValidationError

from heedful.settings.field_types import CountOrZero, Ids, NotNegative, OutputLength


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        (CountOrZero, 0, 0),
        (CountOrZero, -1, None),
        (NotNegative, 0.0, 0.0),
        (NotNegative, -1e-9, None),
        (OutputLength, 100, "100"),
        (OutputLength, True, None),
        (Ids, 7, "7"),
        (Ids, "7, 8", None),
    ],
)
def test_a_type_keeps_what_is_in_its_range_or_form(kind, value, kept):
    adapter = TypeAdapter(kind)
    if kept is None:
        with pytest.raises(ValidationError):
            adapter.validate_python(value, strict=True)
    else:
        assert adapter.validate_python(value, strict=True) == kept
