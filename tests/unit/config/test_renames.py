"""Names from before the first release: refused from users, read in older files."""

import json

import pytest

from heedful.config.load import load_config
from heedful.config.recipes import recipe
from heedful.config.renames import SETTINGS, VALUES, renamed_settings, renamed_table
from heedful.config.schema import RunConfig, setting_fields
from heedful.errors import SettingError
from heedful.runs.folder import RunFolder
from heedful.runs.run import flat_settings, read_settings

OLD_VALUES = [(name, old, new) for name, values in VALUES.items() for old, new in values.items()]


@pytest.mark.parametrize(("old", "new"), SETTINGS.items())
def test_an_old_name_of_a_setting_is_refused_and_the_new_one_named(old, new, tmp_path):
    assert new in setting_fields() and old not in setting_fields()
    table, _, key = old.partition(".")
    value = flat_settings(recipe("tiny"))[new]
    value = 1 if value is None else value
    file = tmp_path / "old.toml"
    file.write_text(f'base = "tiny"\n[{table}]\n{key} = {json.dumps(value)}\n', encoding="utf-8")
    for where in (("tiny", [f"{old}={value}"]), ("tiny", {old: value}), (str(file), ())):
        with pytest.raises(SettingError, match=f"`{old}` is now called `{new}`"):
            load_config(*where)
    with pytest.raises(SettingError, match=f"`{key}` is now called `{new}`"):
        load_config("tiny", [f"{key}={value}"])


@pytest.mark.parametrize(("name", "old", "new"), OLD_VALUES)
def test_an_old_value_is_refused_and_the_new_one_named(name, old, new):
    with pytest.raises(SettingError, match=f"'{old}' came, which is now called '{new}'"):
        load_config("tiny", [f"{name}={old}"])
    assert flat_settings(load_config("tiny", [f"{name}={new}"]))[name] == new


def old_settings():
    """Every old name and, in turn, every old value, beside a setting that kept its name."""
    now = flat_settings(recipe("t2t-base"))
    old = {old: now[new] for old, new in SETTINGS.items()}
    old |= {name: next(iter(values)) for name, values in VALUES.items()}
    return old | {"train.steps": 7}


def test_older_files_are_read_through_the_table():
    old = old_settings()
    read = renamed_settings(old)
    expected = {SETTINGS.get(name, name): value for name, value in old.items()}
    expected |= {name: next(iter(values.values())) for name, values in VALUES.items()}
    assert read == expected
    assert renamed_settings(read) == read
    search = {name.partition(".")[2]: v for name, v in old.items() if name.startswith("search.")}
    assert renamed_table("search", search) == {
        name.partition(".")[2]: v for name, v in expected.items() if name.startswith("search.")
    }


def test_a_config_of_an_older_version_is_read(tmp_path):
    tables = {}
    for name, value in old_settings().items():
        table, _, key = name.partition(".")
        tables.setdefault(table, {})[key] = value
    folder = RunFolder(tmp_path)
    folder.config.write_text(json.dumps({"format": 1, "settings": tables}), encoding="utf-8")
    assert read_settings(folder) == RunConfig().with_settings(renamed_settings(old_settings()))
