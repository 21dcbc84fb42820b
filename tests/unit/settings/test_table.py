"""Tables of settings: frozen, strict, and all faults of all tables at once."""

import pytest
from pydantic import ValidationError

from heedful.config.model import ModelConfig
from heedful.config.schema import RunConfig
from heedful.errors import SettingError
from heedful.settings.attention import AttentionSettings
from heedful.settings.table import SettingsTable, walk


def test_a_table_is_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        AttentionSettings().score = "additive"


def test_faults_of_nested_tables_are_named_together():
    with pytest.raises(SettingError) as caught:
        RunConfig(model={"d_model": 0, "attention": {"window": "lst", "sore": 1}})
    message = str(caught.value)
    for part in (
        "`model.d_model`",
        "`model.attention.window`",
        "did you mean `model.attention.score`",
    ):
        assert part in message


def test_a_table_alone_suggests_its_own_settings():
    with pytest.raises(SettingError, match=r"did you mean `model.attention.score`"):
        AttentionSettings(scor="dot")


def test_tables_inside_come_last():
    names = [name for name, _, _ in walk(ModelConfig, "model.")]
    first = names.index("model.attention.encoder")
    assert all(name.count(".") == 2 for name in names[first:])
    assert issubclass(ModelConfig, SettingsTable)
