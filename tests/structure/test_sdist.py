"""The source archive: testable, documented, buildable."""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = ("CHANGELOG.md", "LICENSE", "MANIFEST.in", "Makefile", "README.md", "constraints.txt")
FOLDERS = ("benchmarks", "docs", "src", "tests", "tools")


def test_the_source_archive_has_tests_docs_benchmarks_and_constraints(tmp_path):
    # a copy, for what an earlier build left beside the sources would be taken along
    tree = tmp_path / "tree"
    left = shutil.ignore_patterns("__pycache__", ".venv", "generated", "*.egg-info", ".*_cache")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, tree / name, ignore=left)
    for name in (*FILES, "pyproject.toml"):
        shutil.copy(ROOT / name, tree)
    wanted = {path.relative_to(tree) for path in tree.rglob("*") if path.is_file()}
    (tree / "tests" / "__pycache__").mkdir()
    (tree / "tests" / "__pycache__" / "conftest.cpython-311.pyc").touch()
    (tree / "benchmarks" / "peers" / "joey" / ".venv").mkdir()
    (tree / "benchmarks" / "peers" / "joey" / ".venv" / "pyvenv.cfg").touch()
    done = subprocess.run(
        [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", tmp_path, tree],
        check=False,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        files = [Path(one.name) for one in packed.getmembers() if one.isfile()]
    found = {path.relative_to(path.parts[0]) for path in files}
    assert wanted - found == set()
    assert {
        path
        for path in found - wanted
        if not any(part.endswith(".egg-info") for part in path.parts)
    } == {Path("PKG-INFO"), Path("setup.cfg")}
