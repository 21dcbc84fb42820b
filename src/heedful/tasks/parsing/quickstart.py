"""
The quickstart for parsing, without a download: trees, training, score and a picture.

::

    trees ─ train ─ average ─ parse ─ score ─ picture ─ attention
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from heedful.analysis.attend import attend
from heedful.data.toy_grammar.constituents import split_brackets
from heedful.quickstart import average_run, claim_folder, command_name, leaves_nothing
from heedful.tasks.parsing.parser import Parser
from heedful.tasks.parsing.trees.clean import clean_trees
from heedful.tasks.parsing.trees.draw_svg import draw_tree as draw_svg
from heedful.tasks.parsing.trees.draw_text import draw_tree as draw_text
from heedful.tasks.parsing.trees.read import read_trees
from heedful.tasks.parsing.trees.score import score_trees
from heedful.training.train import train
from heedful.visualise.explorer import write_explorer
from heedful.visualise.record import ExplorerRecord

SIZES = (15_000, 300, 500)
"""Numbers of trees for training, validation and test."""
SENTENCE = "the small girl does not sing because she is sad"
_SETTINGS = (
    *("parsing.next_word=true", "data.vocabulary_size=300", "data.max_length=128"),
    *("train.steps=600", "train.validate_steps=200", "train.checkpoint_steps=50"),
)


def quickstart(
    out: Path,
    *,
    device: str = "auto",
    precision: str = "auto",
    threads: int = 0,
    say: Callable[[str], object],
    settings: Sequence[str] = (),
    sizes: tuple[int, int, int] = SIZES,
    resume: bool = False,
) -> float:
    """Train a small parser on trees of the built-in grammar, show its output and return its F1."""
    claim = claim_folder(out, resume)
    text, run = out / "text", out / "run"
    _write_trees(text, sizes)
    say(f"wrote {sizes[0]:,} trees of a small grammar to {text}")
    with leaves_nothing(claim, run):
        train(
            "tiny",
            trees=text / "train.trees",
            valid_trees=text / "valid.trees",
            out=run,
            resume=resume and run.exists(),
            settings=[
                *_SETTINGS,
                f"train.device={device}",
                f"train.precision={precision}",
                f"train.threads={threads}",
                *settings,
            ],
        )
    average_run(run, say)

    chosen = {"device": device, "precision": precision, "threads": threads}
    parser = Parser.load(run, **chosen)  # type: ignore[arg-type]
    gold = clean_trees(read_trees(text / "test.trees"))
    lines, tags = [" ".join(tree.words) for tree in gold], [tree.tags for tree in gold]
    parses = parser.parse(lines, tags=tags)
    predicted = out / "predicted.trees"
    predicted.write_text("".join(f"{output.tree}\n" for output in parses), encoding="utf-8")
    score = score_trees(gold, [output.tree for output in parses])
    say(
        f"F1 {score.f1:.1f} on {len(gold):,} unseen sentences; {score.exact_match:.1f}% of the "
        "trees are correct in every phrase"
    )
    free = Parser.load(run, constrained=False, **chosen)  # type: ignore[arg-type]
    malformed = sum(not output.is_tree for output in free.parse(lines))
    say(
        f"without the constraint that trees are well-formed, {malformed:,} of these outputs would "
        "be malformed"
    )
    parse = parser.parse(SENTENCE)
    for line in (SENTENCE, *draw_text(parse.tree)):
        say(line)
    picture = out / "tree.svg"
    picture.write_text(draw_svg(parse.tree), encoding="utf-8")
    page = out / "attention.html"
    shown = attend(parser.translator, SENTENCE)
    write_explorer(ExplorerRecord(SENTENCE, (shown,)), page)
    say(f"trees        {text}")
    say(f"run folder   {run}")
    say(f"predicted    {predicted}")
    say(f"tree         {picture}")
    say(f"explore it   {page}")
    say(f'try next     echo "{SENTENCE}" | {command_name()} parse predict {run}')
    return score.f1


def _write_trees(folder: Path, sizes: tuple[int, int, int]) -> None:
    """Write the trees for training, validation and test."""
    folder.mkdir(parents=True, exist_ok=True)
    trained, held_out = split_brackets(sizes[0], sizes[1] + sizes[2], seed=1)
    parts = {"train": trained, "valid": held_out[: sizes[1]], "test": held_out[sizes[1] :]}
    for name, lines in parts.items():
        (folder / f"{name}.trees").write_text("".join(f"{line}\n" for line in lines), "utf-8")
