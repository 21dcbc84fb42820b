"""What the README shows is run as it stands, with a shorter training."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from tests.support.commands import run_shell, write_text

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
QUICK = (
    "--set train.steps=6 --set train.warmup=4 --set train.batch_tokens=256 "
    "--set data.vocabulary_size=400 --set search.max_length=8 --set train.precision=fp32"
)


def blocks(language):
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", README)


@pytest.fixture(scope="module")
def folder(grammar, tmp_path_factory):
    folder = tmp_path_factory.mktemp("readme")
    pairs, held_out = grammar
    for name, part in (("train", pairs), ("valid", held_out), ("test", held_out[:9])):
        write_text(folder, part, name)
    return folder


def test_the_commands_and_the_python_of_the_readme_work(zygote, folder):
    lines = [line for block in blocks("sh") for line in block.splitlines() if "heedful" in line]
    lines = [line for line in lines if not line.startswith("make")]
    assert len(lines) == 5
    outputs = []
    for line in lines:
        short = line.replace("heedful train small", f"heedful train small {QUICK}")
        outputs.append(run_shell(zygote, short, folder))
    assert outputs[3].startswith("BLEU")
    assert len(outputs[4].splitlines()) == 3
    code = blocks("python")[0]
    shown = run_shell(zygote, f"heedful -c {shlex.quote(code)}", folder)  # see fork_server.py
    assert re.search(r"\(3, 4, \d+, \d+\)", shown)


def test_the_blocks_of_the_readme_work():
    names = {}
    exec(blocks("python")[1], names)  # our own page
    assert names["states"].shape == (1, 2, 512)
    assert [w.shape for w in names["weights_of_each_layer"]] == [(1, 8, 2, 2)] * 6


def test_every_command_is_in_the_readme_and_every_link_leads_somewhere():
    from heedful.cli.main import app

    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    groups = [group.typer_instance.info.name for group in app.registered_groups]
    assert groups
    for name in (*names, *groups):
        assert f"`heedful {name}" in README
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("http") or (ROOT / target).exists(), target


def test_installing_is_told_as_the_package_says_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    told = re.findall(r"(?m)^\| `(\w+)` \| .* \| ([^|]*) \|$", README)
    names = {
        extra: ", ".join(re.match(r"[\w-]+", one)[0] for one in packages)
        for extra, packages in project["optional-dependencies"].items()
    }
    assert dict(told) == {extra: names[extra] for extra in names if extra not in ("dev", "docs")}
    torch = next(one for one in project["dependencies"] if one.startswith("torch"))
    assert f"'{torch}' --index-url https://download.pytorch.org/whl/cpu" in README


def test_make_has_the_two_targets():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("quickstart", "test"):
        assert f"make {target}" in README
        assert re.search(rf"(?m)^{target}:", makefile)
