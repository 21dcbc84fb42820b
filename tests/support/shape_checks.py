"""
Checks of the shapes and types in heedful's signatures, for the first calls of each test.

Only modules whose signatures contain shapes are checked; mypy checks the types of all others. A
check takes some fifty microseconds, and a training of a hundred steps calls checked functions a
hundred thousand times, always with the same shapes. So each test checks its first calls, which are
a pass of a model and several steps of a search, and runs the others unchecked.
"""

import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import jaxtyping
from beartype import beartype

# A step of the trainer's tests makes about 1,600 checked calls; most of a step is one more layer.
CHECKED_CALLS = 800
_calls = 0

SOURCE = Path(__file__).parents[2] / "src"
# A type with a shape under a name of its own, such as `Rows = Int[np.ndarray, "_"]`.
_ALIAS = re.compile(r"^([A-Z]\w+) = [^\n]*\b(?:Bool|U?Int|Integer|Float|Shaped)\w*\[", re.MULTILINE)


def check_shapes() -> None:
    """Check the signatures of modules with shapes, of those that are imported from now on."""
    jaxtyping.install_import_hook(modules_with_shapes(), f"{__name__}.{first_calls.__name__}")


def modules_with_shapes() -> list[str]:
    """List the modules of heedful that import types with shapes, from jaxtyping or as aliases."""
    texts = {path: path.read_text("utf-8") for path in sorted(SOURCE.glob("heedful/**/*.py"))}
    aliases = {alias for text in texts.values() for alias in _ALIAS.findall(text)}
    names = "|".join(sorted(aliases))
    imports = re.compile(
        rf"^from (?:jaxtyping import|heedful\.\S+ import (?:\([^)]*)?[^\n(]*\b(?:{names})\b)",
        re.MULTILINE,
    )
    return [
        ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        for path, text in texts.items()
        if imports.search(text)
    ]


def begin_test() -> None:
    """Check signatures again, from the first call of a test on."""
    global _calls  # noqa: PLW0603
    _calls = 0
    jaxtyping.config.update("jaxtyping_disable", False)


def first_calls(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check a function with beartype until the test has made its share of checked calls."""
    checked: Callable[..., Any] | None = None

    @wraps(function)
    def count(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked
        global _calls  # noqa: PLW0603
        checked = checked or beartype(function)  # takes a millisecond; most are never called
        _calls += 1
        if _calls >= CHECKED_CALLS:
            jaxtyping.config.update("jaxtyping_disable", True)
        return checked(*args, **kwargs)

    return count
