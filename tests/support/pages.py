"""
The commands of the documentation's pages, cut short.

The tutorial is read in an empty folder, every other page in a copy of what the tutorial left: text
and a trained run, ``runs/en-fr``. Only models of other toolkits, ``old``, are put beside them.
Trainings, measurements and the tutorial's text are cut short, and ``heedful``, Python and
``torchrun`` are forks of the zygote; nothing else is changed.
"""

import re
import shlex
import shutil
from pathlib import Path

from tests.support import old_fairseq, old_joey, old_opennmt
from tests.support.commands import run_shell

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGES = sorted(
    page.relative_to(DOCS).as_posix()
    for page in DOCS.rglob("*.md")
    if page.relative_to(DOCS).parts[0] not in ("generated", "results")
)
# Their commands take two minutes and a half: tests/soak/test_howto.py.
HOWTO = [page for page in PAGES if page.startswith("howto/")]
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
    generated = re.fullmatch(r"heedful data get \w+ --out (\w+)", command)
    if generated:
        cuts = [
            f"for file in {generated[1]}/{name}.*; do sed -i {count}q $file; done"
            for name, count in KEPT.items()
        ]
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


def heedful_words(command):
    """The words after each `heedful` of a line of shell."""
    lexer = shlex.shlex(command.partition("<<'")[0], posix=True, punctuation_chars=True)
    found, words = [], []
    for word in lexer:
        if word == "heedful":
            words = []
            found.append(words)
        elif set(word) <= set("();<>|&"):
            words = []  # of another program, or of a file's name
        else:
            words.append(word)
    return found


def follow_tutorial(zygote, folder):
    """Do what the tutorial says in a folder."""
    for command in commands(TUTORIAL):
        run_shell(zygote, shortened(command), folder)


def follow(page, zygote, begun, corpora, folder):
    """Do what a page says in a copy of what the tutorial left."""
    shutil.copytree(begun, folder, dirs_exist_ok=True)
    (folder / "corpora").symlink_to(corpora)
    for command in commands(page):
        run_shell(zygote, shortened(command), folder)


def write_old_models(folder):
    """Checkpoints as the archived toolkits left them, with random weights."""
    for name in ("fairseq", "opennmt", "joey"):
        (folder / name).mkdir(parents=True)
    old_fairseq.write(folder / "fairseq", old_fairseq.options())
    old_opennmt.write(folder / "opennmt" / "model_step_100.pt", old_opennmt.options())
    old_joey.write(folder / "joey", old_joey.settings())
