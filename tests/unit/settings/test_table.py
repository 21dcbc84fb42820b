"""Tables of settings: frozen, strict, and all faults of all tables at once."""

import pytest
from pydantic import ValidationError

from heedful.config.model import ModelConfig
from heedful.config.schema import RunConfig
from heedful.errors import SettingError
from heedful.families.recurrent.config import RecurrentConfig
from heedful.settings.table import SettingsTable, walk


def test_a_table_is_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        RecurrentConfig().cell = "gru"


def test_faults_of_nested_tables_are_named_together():
    with pytest.raises(SettingError) as caught:
        RunConfig(model={"d_model": 0, "recurrent": {"cell": "lst", "sore": 1}})
    message = str(caught.value)
    for part in (
        "`model.d_model`",
        "`model.recurrent.cell`",
        "did you mean `model.recurrent.score`",
    ):
        assert part in message


def test_a_table_alone_suggests_its_own_settings():
    with pytest.raises(SettingError, match=r"did you mean `model.recurrent.score`"):
        RecurrentConfig(scor="dot")


def test_tables_inside_come_last():
    names = [name for name, _, _ in walk(ModelConfig, "model.")]
    first = names.index("model.recurrent.cell")
    assert all(name.count(".") == 2 for name in names[first:])
    assert issubclass(ModelConfig, SettingsTable)
