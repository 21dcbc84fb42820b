"""
Which families of models the program has.

A family that is removed, its folder and its line in the registry, takes its tests along: those in
`tests/unit/families/NAME`, and those marked with ``pytest.mark.family("NAME")``, by themselves or
by the ``pytestmark`` of their module. `tests/conftest.py` leaves them out. Cases of several
families come from `cases`.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from heedful.families.registry import MODULES, are_offered, families
from heedful.settings.conditions import flat

HERE = frozenset(name.rpartition(".")[2] for name in MODULES)
UNIT_TESTS = Path(__file__).parents[1] / "unit" / "families"
_MARKS_OF_MODULE = re.compile(r"^pytestmark = [^\n]*$", re.MULTILINE)


def missing(names: Iterable[str]) -> set[str]:
    """Those that are not here."""
    return set(names) - HERE


def missing_of_file(path: Path) -> set[str]:
    """The families that a file of tests needs as a whole, and that are not here."""
    if UNIT_TESTS in path.parents:
        return missing(path.relative_to(UNIT_TESTS).parts[:-1][:1])
    if path.suffix != ".py" or not path.name.startswith("test_"):
        return set()
    marks = " ".join(_MARKS_OF_MODULE.findall(path.read_text(encoding="utf-8")))
    named = re.findall(r"mark\.family\(([^)]*)\)", marks)
    return missing(re.findall(r'"(\w+)"', " ".join(named)))


def are_here(settings: Mapping[str, Any]) -> bool:
    """Whether all families that settings of ``[model]`` name are here."""
    return _are_here(flat({"model": settings}))


def texts_are_here(texts: Iterable[str]) -> bool:
    """The same of settings as on the command line."""
    pairs = (text.partition("=") for text in texts)
    return _are_here({name: value for name, _, value in pairs if name.startswith("model.")})


def _are_here(values: Mapping[str, Any]) -> bool:
    from heedful.config.model import ModelConfig

    tables = {name.split(".")[1] for name in values if name.count(".") == 2}
    return are_offered(values) and tables <= ModelConfig.model_fields.keys()


def cases(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Those settings of ``[model]``, by name, whose families are here."""
    return {name: values for name, values in settings.items() if are_here(values)}


def recipes_of(family: str) -> list[str]:
    """The recipes of a family whose other families are here, too."""
    by_name = dict(zip((name.rpartition(".")[2] for name in MODULES), families(), strict=True))
    recipes = by_name[family].recipes if family in by_name else {}
    return [name for name, recipe in recipes.items() if are_offered(recipe.settings)]
