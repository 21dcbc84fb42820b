"""
Every command of every page is executed, in the order of the page.

The tutorial is read in an empty folder, every other page in a copy of what the tutorial left: text
and a trained run, ``runs/en-fr``. Only models of other toolkits, ``old``, are put beside them.
Trainings, measurements and the tutorial's text are cut short, and ``heedful``, Python and
``torchrun`` are forks of the zygote; nothing else is changed.
"""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from tests.support import old_fairseq, old_joey, old_opennmt
from tests.support.commands import run_shell

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(
    page.relative_to(DOCS).as_posix()
    for page in DOCS.rglob("*.md")
    if page.relative_to(DOCS).parts[0] not in ("generated", "results")
)
# Six steps of few tokens, and searches that end soon: such a model hardly ever ends by itself.
SHORT = (
    "--set train.steps=6 --set train.warmup=4 --set train.batch_tokens=256 "
    "--set train.precision=fp32 --set search.max_length=8"
)
TUTORIAL = "tutorial.md"
# As long as the tests have time for; the lines come from the grammar all the same.
KEPT = {"train": 1500, "valid": 40, "test": 9}
SMALL = "--set data.vocabulary_size=400"


def commands(page):
    """The commands of a page in order: lines of shell, continued ones joined, and Python."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = []
    for language, block in re.findall(r"(?ms)^```(sh|python)\n(.*?)^```$", text):
        if language == "python":
            found.append(f"heedful -c {shlex.quote(block)}")  # see tests/support/fork_server.py
        else:
            found += _shell_commands(block.replace("\\\n", " "))
    return found


def _shell_commands(block):
    """Split a block at line ends, but keep a here-document with its command."""
    lines, end = [], None
    for line in block.splitlines():
        if end is not None:
            lines[-1] += f"\n{line}"
            end = None if line == end else end
        elif line.strip() and not line.startswith("#"):
            lines.append(line)
            start = re.search(r"<<'(\w+)'$", line)
            end = start[1] if start else None
    return lines


def shortened(command):
    """Cut text and training short, and keep subwords few enough for a text this small."""
    if command == "heedful data get grammar --out .":
        sides = [(name, side, count) for name, count in KEPT.items() for side in ("en", "fr")]
        cuts = [f"sed -i {count}q {name}.{side}" for name, side, count in sides]
        return "\n".join([command, *cuts])
    if command.startswith("torchrun "):  # tests/cli/test_ranks.py starts it as it stands
        words = command.removeprefix("torchrun ").replace("-m heedful", "--no-python heedful")
        command = f"heedful -c 'from torch.distributed.run import main; main()' {words}"
    more = []
    if "heedful train " in command and "--print-config" not in command:
        kept = ("--finetune-from", "--data ", "--tokenizer ", "vocabulary_size")
        more = [SHORT] if any(word in command for word in kept) else [SHORT, SMALL]
    elif "heedful data prepare" in command and "vocabulary_size" not in command:
        more = [SMALL]
    elif re.match("heedful bench (train|translate) ", command):
        more = ["--precision fp32 --only heedful"]
    elif command == "heedful paper scaling":
        more = ["--largest 32 --queries 100"]
    return " ".join([command, *more])


@pytest.fixture(scope="session")
def begun(zygote, tmp_path_factory):
    """The folder that the tutorial leaves, and old models; copied for each other page."""
    folder = tmp_path_factory.mktemp("docs")
    for command in commands(TUTORIAL):
        run_shell(zygote, shortened(command), folder)
    write_old_models(folder / "old")
    return folder


def write_old_models(folder):
    """Checkpoints as the archived toolkits left them, with random weights."""
    for name in ("fairseq", "opennmt", "joey"):
        (folder / name).mkdir(parents=True)
    old_fairseq.write(folder / "fairseq", old_fairseq.options())
    old_opennmt.write(folder / "opennmt" / "model_step_100.pt", old_opennmt.options())
    old_joey.write(folder / "joey", old_joey.settings())


def test_the_tutorial_works_in_an_empty_folder(begun):
    assert commands(TUTORIAL)[0].startswith("heedful data get")
    for name, count in KEPT.items():
        for language in ("en", "fr"):
            text = (begun / f"{name}.{language}").read_text(encoding="utf-8")
            assert len(text.splitlines()) == count
    assert (begun / "runs" / "en-fr" / "average").is_dir()


@pytest.mark.parametrize("page", [page for page in PAGES if page != TUTORIAL])
def test_the_commands_of_a_page_work(page, zygote, begun, corpora, tmp_path):
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    (tmp_path / "corpora").symlink_to(corpora)
    for command in commands(page):
        run_shell(zygote, shortened(command), tmp_path)


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_a_page_lead_somewhere(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("http", "generated/", "../generated/")):
            assert ((DOCS / page).parent / target).exists(), target


def test_every_page_is_in_a_table_of_contents():
    listed = "".join(
        "".join(re.findall(r"(?ms)^```\{toctree\}\n(.*?)^```$", path.read_text(encoding="utf-8")))
        for path in DOCS.rglob("*.md")
    )
    for page in PAGES:
        assert page == "index.md" or page.removesuffix(".md") in listed, page
