import pytest

from heedful.errors import PluginError
from heedful.settings.registries import CHOSEN_BY, METRICS, SCHEDULES, ValidationMetric
from heedful.settings.registry import Registry, cannot_take, registering


@pytest.fixture
def registry():
    made = Registry("thing", {"own": "heedful.settings.registry:cannot_take", "two": 2})
    yield made
    Registry.every.remove(made)


def test_own_parts_are_imported_when_they_are_used(registry):
    assert list(registry) == ["own", "two"] and len(registry) == 2
    assert registry["own"] is cannot_take
    assert registry["two"] == 2 and registry.added() == ()
    with pytest.raises(KeyError):
        registry["three"]


def test_what_a_plugin_registers_is_forgotten_with_it(registry):
    changes = []
    registry.watch(lambda: changes.append(list(registry)))
    with registering("plugin"):
        registry.register("three", 3)
    registry.register("four", 4)
    assert registry.plugin_of("three") == "plugin" and registry.plugin_of("four") is None
    registry.forget("plugin")
    registry.forget("plugin")
    assert registry.added() == ("four",)
    assert changes == [
        ["own", "two", "three"],
        ["own", "two", "three", "four"],
        ["own", "two", "four"],
    ]


def test_what_a_watcher_cannot_take_is_not_registered(registry):
    seen = []

    def watcher():
        seen.append(list(registry))
        if "three" in registry:
            raise ValueError("three")

    registry.watch(watcher)
    with pytest.raises(ValueError, match="three"):
        registry.register("three", 3)
    assert registry.added() == ()
    assert seen == [["own", "two", "three"], ["own", "two"]]


@pytest.mark.parametrize("name", ["own", "a b", ""])
def test_names_that_are_taken_or_none_are_refused(registry, name):
    with pytest.raises(PluginError, match="the name of a thing must be"):
        registry.register(name, 1)


def test_a_function_must_take_its_arguments():
    assert cannot_take(lambda a, b: None, ("a", "b")) == ""
    assert cannot_take(lambda *parts: None, ("a", "b")) == ""
    assert "but takes (a)" in cannot_take(lambda a: None, ("a", "b"))
    assert "but is int" in cannot_take(5, ("a",))


def test_a_metric_scores_with_a_function():
    metric = ValidationMetric("words", "words", True, lambda references, language: language)
    with pytest.raises(PluginError, match="'words' must return a function of the translations"):
        metric.of(["a dog"], "en")


def test_every_own_part_is_found():
    for registry in CHOSEN_BY.values():
        for name in registry:
            assert registry[name] is not None or registry.kind == "attention score"
    assert all(callable(rate) for rate in SCHEDULES.values())
    assert [name for name, metric in METRICS.items() if not metric.score] == ["f1", "loss"]
