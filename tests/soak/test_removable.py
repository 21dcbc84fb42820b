"""
Each family but the Transformer can be removed: its folder, and its line in the registry.

In a copy of the tree without a family every module is imported, every recipe is made, `heedful
info` runs, `tiny` learns, every test is collected, and the tests of COMPOSED are green. Its own
tests stay in the copy: `tests/conftest.py` has to leave them out.
"""

import os
import re
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tests.support.families import HERE

ROOT = Path(__file__).parents[2]
# What composes families from the registry. Tests of what another family computes are left out,
# because no family computes with another; so are tests that train or measure for minutes. The
# reference, the Makefile and the table of torch's internals name the modules of families, so the
# tests that compare these with the source are left out, too.
COMPOSED = (
    "tests/parity/test_attention_parts.py",
    "tests/parity/test_network_parts.py",
    "tests/structure/test_class_names.py",
    "tests/structure/test_imports.py",
    "tests/unit/bench/test_search_profile.py",
    "tests/unit/config/",
    "tests/unit/families/test_",
    *(
        f"tests/unit/families/{name}/test_{what}.py"
        for name, what in product(sorted(HERE), ("clashes", "config", "recipes"))
    ),
    "tests/unit/kernels/test_torch_internals.py",
    "tests/unit/model/test_encoder_decoder.py",
    "tests/unit/model/test_parts_mixer.py",
    "tests/unit/model/test_parts_network.py",
    "tests/unit/model/test_transformer_alone.py",
    "tests/unit/paper/test_dependent_products.py",
    "tests/unit/paper/test_layer_build.py",
    "tests/unit/paper/test_layer_kinds.py",
    "tests/unit/runs/test_size_check.py",
    "tests/unit/search/test_settings.py",
    "tests/unit/settings/",
)
# Collects every test, and runs those of COMPOSED.
CHOICE = f"""
def pytest_collection_modifyitems(config, items):
    chosen, others = [], []
    for item in items:
        (chosen if item.nodeid.startswith({COMPOSED}) else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = chosen
"""

USE = """
import pkgutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import heedful
from heedful.cli.main import app
from heedful.config.recipes import recipe, recipe_names

for module in pkgutil.walk_packages(heedful.__path__, "heedful."):
    needs_triton = module.name == "heedful.kernels.triton_kernels"
    if not module.name.endswith("__main__") and (not needs_triton or find_spec("triton")):
        import_module(module.name)
for name in recipe_names():
    recipe(name)
app(["info"], standalone_mode=False)
for language in ("en", "fr"):
    Path(f"train.{language}").write_text("a red dog\\na big cat\\nthe cat\\n" * 9, "utf-8")
heedful.train(
    "tiny",
    source="train.en",
    target="train.fr",
    out="run",
    settings={"train.steps": 2, "train.device": "cpu", "data.vocabulary_size": 40},
    quiet=True,
)
assert heedful.Translator.load("run", device="cpu").translate("a dog", max_length=3).tokens
"""


def without(family, folder):
    """A copy of the tree that the family was removed from."""
    # Bytecode is copied: it is valid, since the copied files have the times of the files.
    leave_out = shutil.ignore_patterns("*.egg-info", ".venv", "build")
    for name in ("src", "tests", "tools", "benchmarks", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=leave_out)
    for name in ("pyproject.toml", "Makefile", "README.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder / name)
    families = folder / "src" / "heedful" / "families"
    shutil.rmtree(families / family)
    registry = families / "registry.py"
    line = f'    "heedful.families.{family}",\n'
    text = registry.read_text("utf-8")
    assert text.count(line) == 1
    registry.write_text(text.replace(line, ""), "utf-8")
    (folder / "choice.py").write_text(CHOICE, "utf-8")
    return folder


def run(folder, *arguments):
    """Run Python in the copy; return what it printed."""
    places = {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, **places},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


@pytest.fixture(scope="module", params=sorted(HERE - {"transformer"}))
def copy(request, tmp_path_factory):
    return without(request.param, tmp_path_factory.mktemp(request.param) / "tree")


def test_the_program_works(copy):
    assert str(copy) in run(copy, "-c", "import heedful; print(heedful.__file__)")
    run(copy, "-c", USE)


def test_every_test_is_collected_and_what_composes_families_is_green(copy):
    """Importing all tests shows that nothing else imports the family."""
    plugins = ["-p", "choice", "-p", "no:cacheprovider", "-p", "no:jaxtyping"]
    options = (*plugins, "-o", "addopts=-p no:schemathesis")
    printed = run(copy, "-m", "pytest", "-q", "-m", "not soak", *options, "tests")
    assert re.search(r"\d{3} passed, \d{4,5} deselected", printed), printed[-500:]
