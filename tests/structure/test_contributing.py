"""The files for those who carry the project on say what the Makefile and the package say."""

import re
import subprocess
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_page_names_the_targets_of_make_help():
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    targets = set(re.findall(r"(?m)^  make (\S+)", listed.stdout)) - {"help"}
    section = _text("CONTRIBUTING.md").split("## The targets of make")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    assert {*re.findall(r"`([a-z0-9-]+)`", "\n".join(rows))} == targets


def test_the_workflow_runs_the_ranges_of_the_makefile():
    jobs = yaml.safe_load(_text(".github/workflows/tests.yml"))["jobs"]
    for job, values, name in (
        ("torch", "torch", "TORCH_RANGE"),
        ("python", "python", "PYTHON_RANGE"),
    ):
        wanted = re.search(rf"(?m)^{name} \?= (.*)$", _text("Makefile"))[1].split()
        assert jobs[job]["strategy"]["matrix"][values] == [w.removeprefix("python") for w in wanted]
    commands = [step.get("run") for job in jobs.values() for step in job["steps"]]
    assert "bash .ci/run" in commands and "make wheel" in commands
    for line in re.findall(r"uses: (.*)", _text(".github/workflows/tests.yml")):
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v[\d.]+", line)


def test_pre_commit_runs_the_checks_of_make():
    ((repository,),) = yaml.safe_load(_text(".pre-commit-config.yaml")).values()
    (hook,) = repository["hooks"]
    assert hook["entry"] == "make check" and not hook["pass_filenames"]


def test_make_test_checks_names_spelling_and_sentences():
    command = ["make", "--dry-run", "test"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for tool in ("names.py", "sentences.py long", "spelling.py"):
        assert re.search(rf"(?m) tools/{tool}$", listed.stdout), tool


def test_the_citation_has_the_version_and_license_of_the_package():
    citation = yaml.safe_load(_text("CITATION.cff"))
    assert f'__version__ = "{citation["version"]}"' in _text("src/heedful/_version.py")
    assert citation["license"] == tomllib.loads(_text("pyproject.toml"))["project"]["license"]


def test_releasing_names_the_wheels_that_setup_makes():
    page, setup = _text("RELEASING.md"), _text("setup.py")
    platform = re.search(r'_PLATFORM, _GLIBC = "(\w+)"', setup)[1]
    assert f"py3-none-{platform}" in page and "HEEDFUL_NATIVE=0 make wheel" in page
