"""
The commands of the documentation's pages, cut short.

The tutorial is read in an empty folder, every other page in a copy of what the tutorial left: text
and a trained run, ``runs/en-fr``. Trees, more runs and models of other toolkits, ``old``, are put
beside them. Trainings, measurements and texts are cut short, servers in the foreground are stopped
once they are ready, and ``heedful``, Python and ``torchrun`` are forks of the zygote; nothing else
is changed.
"""

import re
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from heedful.data.toy_grammar.constituents import split_brackets
from tests.support import old_fairseq, old_joey, old_opennmt
from tests.support.commands import run_shell

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    page.relative_to(DOCS).as_posix()
    for page in DOCS.rglob("*.md")
    if page.relative_to(DOCS).parts[0] not in ("generated", "results")
)
# Their commands take minutes: tests/soak/test_howto.py.
HOWTO = [page for page in PAGES if page.startswith("howto/")]
EXECUTED = ("sh", "python")
# Begins every block of commands that no test runs.
NOT_RUN = "# not run by the tests: "
# Six steps of few tokens, and searches that end soon: such a model hardly ever ends by itself, or
# always at once. A later command may train on its translations, so they have a word at least.
SHORT = (
    "--set train.steps=6 --set train.warmup=4 --set train.batch_tokens=256 "
    "--set train.precision=fp32 --set search.max_length=8 --set search.min_length=1"
)
TUTORIAL = "tutorial.md"
# As long as the tests have time for; the lines come from the grammar all the same.
KEPT = {"train": 1500, "valid": 40, "test": 9}
SMALL = "--set data.vocabulary_size=400"
DOWNLOADED = "multi30k"
# Instead of the whole grammar, which tests/cli/test_data.py writes by the same command.
GRAMMAR = "heedful data get grammar --out "
WRITE_GRAMMAR = (
    "import sys; from pathlib import Path; "
    "from heedful.data.toy_grammar.corpus import write_grammar_text; "
    f"write_grammar_text(Path(sys.argv[1]), {(*KEPT.values(),)})"
)
# Commands that measure or train longer than the tests can wait, by their first words.
REDUCED = {
    "heedful paper scaling": "--largest 32 --queries 100",
    "heedful paper table1 ": "--budget 5s",
    "heedful paper table2 --budget": "--budget 1m --system base --system bytenet --system moe",
    "heedful paper table2 --data": "--budget 40s --vocabulary 400 --system base --system convs2s",
    "heedful paper claims mask": "--budget 40s",
    "heedful paper claims --data": "mask --budget 40s --vocabulary 400",
    "heedful bench train ": "--precision fp32 --only heedful",
    "heedful bench translate ": "--precision fp32 --only heedful",
    "heedful parse train ": f"{SHORT} --set data.vocabulary_size=300",
}
# A block that imports one of these is executed where it is installed; heedful needs none of them.
TRACKERS = re.compile(r"(?m)^import (mlflow|optuna|wandb)$")
# Runs that a page names without training them.
RUNS_BEFORE = {
    "howto/serve.md": (
        "heedful train tiny --source train.fr --target train.en --out runs/fr-en",
        "heedful train tiny --source train.en --target train.fr --tokenizer runs/en-fr "
        "--set train.seed=2 --out runs/second",
        "heedful train tiny --corpora many.toml --out runs/many",
    ),
}


class FencedBlock(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str


def blocks(page: Path) -> list[FencedBlock]:
    """Find the fenced blocks of a page; one that is indented is part of a text."""
    text = page.read_text(encoding="utf-8")
    return [FencedBlock(*match) for match in re.findall(r"(?ms)^```([^\n]*)\n(.*?)^```$", text)]


def commands(page: str, languages: tuple[str, ...] = EXECUTED) -> list[str]:
    """The commands of a page in order: lines of shell, continued ones joined, and Python."""
    lines = []
    for language, text in blocks(DOCS / page):
        if language == "python" and language in languages and can_run(text):
            lines.append(f"heedful -c {shlex.quote(text)}")  # see tests/support/fork_server.py
        elif language in languages and language != "python":
            lines += shell_commands(text)
    return lines


def can_run(block: str) -> bool:
    """Decide whether the library that a block of Python shows, if any, is installed."""
    return all(find_spec(name) for name in TRACKERS.findall(block))


def shell_commands(block: str) -> list[str]:
    """Split a block at line ends, but keep continued lines and a here-document together."""
    lines, end = [], None
    for line in block.replace("\\\n", " ").splitlines():
        if end is not None:
            lines[-1] += f"\n{line}"
            end = None if line == end else end
        elif line.strip() and not line.startswith("#"):
            lines.append(line)
            start = re.search(r"<<'(\w+)'$", line)
            end = start[1] if start else None
    return lines


def shortened(command: str) -> str:
    """Cut text and training short, and keep subwords few enough for a text this small."""
    if command.startswith(GRAMMAR):
        return f"heedful -c {shlex.quote(WRITE_GRAMMAR)} {command.removeprefix(GRAMMAR)}"
    if command.startswith("heedful data get "):
        return "\n".join([_without_network(command), *_cuts(command)])
    if re.match(r"heedful serve [^&>]*$", command):
        return _until_ready(command)
    if command.startswith("torchrun "):  # tests/cli/test_ranks.py starts it as it stands
        words = command.removeprefix("torchrun ").replace("-m heedful", "--no-python heedful")
        command = f"heedful -c 'from torch.distributed.run import main; main()' {words}"
    more = []
    if "heedful train " in command and "--print-config" not in command:
        fixed = ("--finetune-from", "--data ", "--tokenizer ", "vocabulary_size")
        more = [SHORT] if any(word in command for word in fixed) else [SHORT, SMALL]
    elif "heedful data prepare" in command and "vocabulary_size" not in command:
        more = [SMALL]
    else:
        more = [words for start, words in REDUCED.items() if command.startswith(start)]
    return " ".join([command, *more])


def _without_network(command: str) -> str:
    """Take a corpus that is downloaded from the folder of the real ones."""
    is_download = DOWNLOADED in command and "--mirror" not in command
    return f"{command} --mirror corpora/multi30k/raw" if is_download else command


def _cuts(command: str) -> list[str]:
    """Shorten the text that a command of `data get` leaves in its folder."""
    folder = command.split(" --out ")[1]
    plain = f"find {folder} -maxdepth 1 ! -name '*.gz'"
    sizes = KEPT | ({"test": KEPT["valid"]} if DOWNLOADED in command else {})  # a claim wants 20
    return [
        f"{plain} -name '{name[:3]}*.*' -exec sed -i {count}q {{}} ';'"
        for name, count in sizes.items()
    ]


def _until_ready(command: str) -> str:
    """Stop a server in the foreground as soon as it answers, at a free port."""
    answers = 'curl --silent --fail "$(tail -n 1 served.out)/health"'
    wait = f"until {answers}; do kill -0 $server; sleep 0.1; done"
    return f"{command} --port 0 > served.out & server=$!; {wait}; kill $server; wait $server"


def heedful_words(command: str) -> list[list[str]]:
    """The words after each `heedful` of a line of shell."""
    lexer = shlex.shlex(command.partition("<<'")[0], posix=True, punctuation_chars=True)
    calls, words = [], []
    for word in lexer:
        if word == "heedful" and words[-1:] != ["--only"]:
            words = []
            calls.append(words)
        elif set(word) <= set("();<>|&"):
            words = []  # of another program, or of a file's name
        else:
            words.append(word)
    return calls


def follow_tutorial(zygote, folder):
    """Do what the tutorial says in a folder, and write trees and a list of corpora into it."""
    for command in commands(TUTORIAL):
        run_shell(zygote, shortened(command), folder)
    for name, brackets in zip(("train", "dev"), split_brackets(200, 20, seed=1), strict=True):
        (folder / f"{name}.mrg").write_text("".join(f"{tree}\n" for tree in brackets), "utf-8")
    files = 'source = "train.en"\ntarget = "train.fr"\n'
    corpora = (f'[{tag}]\n{files}tag = "{tag}"\n' for tag in ("de", "nl"))
    (folder / "many.toml").write_text("\n".join(corpora), "utf-8")


def follow(page, zygote, begun, corpora, folder):
    """Do what a page says in a copy of what the tutorial left."""
    shutil.copytree(begun, folder, dirs_exist_ok=True)
    (folder / "corpora").symlink_to(corpora)
    for command in [*RUNS_BEFORE.get(page, ()), *commands(page)]:
        run_shell(zygote, shortened(command), folder)


def write_old_models(folder):
    """Checkpoints as the archived toolkits left them, with random weights."""
    for name in ("fairseq", "opennmt", "joey"):
        (folder / name).mkdir(parents=True)
    old_fairseq.write(folder / "fairseq", old_fairseq.options())
    old_opennmt.write(folder / "opennmt" / "model_step_100.pt", old_opennmt.options())
    old_joey.write(folder / "joey", old_joey.settings())
