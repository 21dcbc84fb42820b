import pytest

from heedful.config.load import load_config
from heedful.config.schema import RunConfig
from heedful.settings.explain import known_elsewhere
from heedful.settings.foreign_names import OPTIONS, SETTINGS
from heedful.settings.table import walk
from tests.support.families import HERE

KNOWN = [name for name, _, _ in walk(RunConfig)]


def test_what_another_toolkit_calls_a_setting_names_one_that_is_there():
    for name, ours in SETTINGS.items():
        assert known_elsewhere(f"train.{name.replace('-', '_').upper()}", KNOWN) == list(ours)


def test_settings_with_a_value_can_be_set():
    chosen = [setting for ours in SETTINGS.values() for setting in ours if "=" in setting]
    assert chosen
    for setting in chosen:
        load_config("tiny", [setting])


@pytest.mark.parametrize("names", [SETTINGS, *OPTIONS.values()])
def test_names_are_written_as_they_are_looked_up(names):
    assert all(name == name.lower().replace("_", "-").lstrip("-") for name in names)


def test_a_name_that_means_something_else_there_alone_is_also_a_setting_of_ours():
    ours = {setting.rpartition(".")[2].replace("_", "-") for setting in KNOWN}
    of_recurrence = {"hidden-size"} if "recurrent" in HERE else set()
    assert {name for name in SETTINGS if name in ours} == {"learning-rate"} | of_recurrence
