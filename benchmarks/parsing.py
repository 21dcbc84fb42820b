"""
Parsers on two treebanks, compared with a grammar of the same trees.

    python -m benchmarks.parsing [--runs FOLDER] [--score] [NAME ...]

Trains the systems NAME (all by default, several hours on two cores), most of them on one thread. An
unfinished run is continued; a finished run is only scored again. With `--score` nothing is trained.
Scores are those of `heedful parse evaluate`, on the development part and from words alone.
Writes `docs/results/parsing.json` and builds the page from it; systems that are not named keep
their rows.
"""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.parsing_agreement import agreed_trees
from benchmarks.pcfg import TREEBANKS, Treebank
from benchmarks.report import ResultPage, arguments, data_folder, measurements_of, outputs_of
from benchmarks.training import describe_training, train
from heedful.evaluation.significance import Resampling, compare, confidence_intervals
from heedful.experiments.page import table
from heedful.experiments.record import Record
from heedful.paper.parsing.pcfg import Pcfg
from heedful.search.settings import SearchOptions
from heedful.tasks.parsing.parser import Parser
from heedful.tasks.parsing.trees.linearize import linearize
from heedful.tasks.parsing.trees.score import TreeScore, score_trees
from heedful.tasks.parsing.trees.tree import Tree

BEAM, PENALTY = 16, "gnmt:0.6"
NUMBERS = ("parsing.next_word=false", "parsing.word_numbers=32")
COUNTING = ("parsing.next_word=false",)
WIDE = (
    *("train.steps=7500", "train.validate_steps=2500", "model.dropout=0.1"),
    *("model.d_model=256", "model.d_ff=1024", "train.learning_rate=1.5e-3"),
)
LSTM = (
    *("train.steps=3000", "train.batch_tokens=4096", "train.validate_steps=1000"),
    *("model.dropout=0.1", "model.d_model=192"),
    *("model.recurrent.encoder_hidden_size=192", "model.recurrent.decoder_hidden_size=320"),
)
CRAFT = ("train.steps=10000", "train.validate_steps=2000", "model.dropout=0.1")

_HEAD = (
    "The tables compare parsers by [labeled F1](../explain/parsing.md#the-score) on development "
    "sentences, parsed from words alone. Parsers use the average of the last ten checkpoints, beam "
    f"{BEAM} and length penalty {PENALTY}; beam and penalty were chosen on the Wall Street "
    "Journal's sentences. A vanilla grammar is a PCFG estimated from as many training trees as the "
    "table says; it parses with CKY. Intervals (95%) are bootstrapped over sentences. “Malformed” "
    "is the share of sentences for which an unconstrained greedy search does not write a tree. "
    "“Next words” and “numbers” are [two settings](../explain/parsing.md#trees-as-symbols) that "
    "help if there are few trees."
)
_TAIL = (
    "“News” means sentences from WMT for which the first two Transformers of the Journal's table "
    "write the same tree. These trees are added to the Wall Street Journal's training trees. "
    "Each parser with next words ([recipes](../explain/parsing.md)) that is trained on all trees "
    "of a treebank scores higher than the grammar learned from these trees. For Transformers "
    "trained on 500 or 1,000 trees, the results do not show that they score higher than the "
    "grammar learned from the same number of trees. The paper's Table 4 uses other sentences and "
    "about 40,000 trees, so its scores cannot be compared with these. [Three parsers with the same "
    "tuning](parsers.md) are scored on sentences that were not used for tuning."
)


class ParserTraining(NamedTuple):
    """A parser to train."""

    title: str
    treebank: str = "wsj"
    recipe: str = "parsing-small-transformer"
    settings: tuple[str, ...] = ()
    trees: int | None = None
    """Number of training trees, from the first tree on; None for all trees."""
    threads: int = 1
    agreed: float | None = None
    """Minimum F1 between wsj-1 and wsj-2 on parsed news that is added to the training trees."""


class ParserEnsemble(NamedTuple):
    """Parsers whose probabilities are averaged."""

    title: str
    members: tuple[str, ...]


SYSTEMS = {
    "wsj-hybrid": ParserTraining("`parsing-small`", recipe="parsing-small"),
    "wsj-1": ParserTraining("`parsing-small-transformer`"),
    "wsj-2": ParserTraining("`parsing-small-transformer`, seed 2", settings=("train.seed=2",)),
    "wsj-3": ParserTraining("`parsing-small-transformer`, seed 3", settings=("train.seed=3",)),
    "wsj-500": ParserTraining(
        "`parsing-small-transformer`, 2,000 steps", settings=("train.steps=2000",), trees=500
    ),
    "wsj-1000": ParserTraining(
        "`parsing-small-transformer`, 2,000 steps", settings=("train.steps=2000",), trees=1_000
    ),
    "wsj-2000": ParserTraining(
        "`parsing-small-transformer`, 3,000 steps", settings=("train.steps=3000",), trees=2_000
    ),
    "wsj-numbers": ParserTraining(
        "`parsing-small-transformer`, numbers, not next words", settings=NUMBERS
    ),
    "wsj-counting": ParserTraining(
        "`parsing-small-transformer`, neither numbers nor next words", settings=COUNTING
    ),
    "wsj-lstm": ParserTraining("`parsing-small-lstm`", recipe="parsing-small-lstm"),
    "wsj-lstm-2": ParserTraining(
        "`parsing-small-lstm`, seed 2", recipe="parsing-small-lstm", settings=("train.seed=2",)
    ),
    "wsj-agreed": ParserTraining("`parsing-small-transformer`, also on news", agreed=100),
    "wsj-agreed-90": ParserTraining("`parsing-small-transformer`, also on more news", agreed=90),
    "craft-1": ParserTraining(
        "`parsing-small-transformer`, 10,000 steps, dropout 0.1", "craft", settings=CRAFT
    ),
    "craft-unsampled": ParserTraining(
        "without sampling of subwords, 10,000 steps, dropout 0.1",
        "craft",
        settings=(*CRAFT, "data.subword_sampling=0"),
    ),
    "craft-wide": ParserTraining(
        "twice as wide, 7,500 steps, dropout 0.1", "craft", settings=WIDE, threads=2
    ),
    "craft-lstm": ParserTraining(
        "`parsing-small-lstm`, half again as wide, 3,000 steps of 4,096 tokens, dropout 0.1",
        "craft",
        "parsing-small-lstm",
        LSTM,
    ),
}
ENSEMBLES = {
    "wsj-ensemble": ParserEnsemble("ensemble of the first two Transformers", ("wsj-1", "wsj-2")),
    "craft-ensemble": ParserEnsemble(
        "ensemble of the first and the wide one", ("craft-1", "craft-wide")
    ),
    "craft-families": ParserEnsemble(
        "ensemble of the wide one and the LSTM", ("craft-wide", "craft-lstm")
    ),
}


def main() -> None:
    """Train and score, and write the page."""
    parser = arguments(__doc__, "parsing")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SYSTEMS))
    parser.add_argument("--score", action="store_true", help="train nothing")
    options = parser.parse_args()
    if unknown := {*options.names} - {*SYSTEMS, *ENSEMBLES}:
        parser.error(f"NAME must be one of {', '.join(SYSTEMS)}, not {unknown.pop()}")
    for name in options.names or [*SYSTEMS, *ENSEMBLES]:
        members = members_of(name)
        bank = treebank(SYSTEMS[members[0]].treebank)
        runs = [options.runs / member for member in members]
        for member, run in zip(members, runs, strict=True):
            if not options.score:
                train_parser(SYSTEMS[member], run, bank)
        row, trees = measure(runs, bank.dev, grammar_score(SYSTEMS[members[0]].treebank))
        print(name, row)
        rows = measurements_of("parsing") | {name: row | {"commit": options.commit}}
        PAGE.keep("parsing", rows, options.commit, outputs=outputs_of("parsing") | {name: trees})


def members_of(name: str) -> tuple[str, ...]:
    """List the training runs of a system."""
    return ENSEMBLES[name].members if name in ENSEMBLES else (name,)


@cache
def treebank(name: str) -> Treebank:
    """Read a treebank; repeated calls return the same object."""
    return TREEBANKS[name](data_folder())


@cache
def grammar_score(name: str) -> TreeScore:
    """Score a grammar of a treebank's training part on its development part; cached."""
    bank = treebank(name)
    grammar = Pcfg(bank.train)
    return score_trees(bank.dev, [grammar.parse(tree.words).tree for tree in bank.dev])


def train_parser(system: ParserTraining, run: Path, bank: Treebank) -> None:
    """Train a parser, or finish its training, and average its checkpoints."""
    if (run / "average").exists():
        return
    more: list[Tree] = []
    if system.agreed is not None:
        parsers = [run.with_name(name) for name in ("wsj-1", "wsj-2")]
        more = agreed_trees(parsers, data_folder(), system.agreed)
    files = write_trees(run, bank.train[: system.trees] + more, bank.dev)
    threads = ("--threads", system.threads)
    train(run, system.recipe, files, system.settings, threads, task=("parse",))


def write_trees(run: Path, train: list[Tree], dev: list[Tree]) -> list[str | Path]:
    """Write the trees of a training run next to its run; return command-line arguments for them."""
    run.parent.mkdir(parents=True, exist_ok=True)
    files: list[str | Path] = []
    for option, part, trees in (("--trees", "train", train), ("--valid-trees", "dev", dev)):
        path = run.with_name(f"{run.name}.{part}.trees")
        path.write_text("".join(f"{tree}\n" for tree in trees), encoding="utf-8")
        files += [option, path]
    return files


def measure(
    runs: list[Path], gold: list[Tree], grammar: TreeScore
) -> tuple[dict[str, Any], list[str]]:
    """Score a parser or an ensemble, and compare it with a grammar; also return its trees."""
    lines, tags = [" ".join(tree.words) for tree in gold], [tree.tags for tree in gold]
    options = SearchOptions(beam=BEAM, length_penalty=PENALTY)
    parser, free = (
        Parser.load(runs, constrained=rules, threads=1, precision="fp32", device="cpu")
        for rules in (True, False)
    )
    trees = [parse.tree for parse in parser.parse(lines, options, tags)]
    greedy = free.parse(lines, SearchOptions(beam=1))
    row = {
        **compare_trees(gold, trees, grammar),
        "malformed_when_free": sum(not parse.is_tree for parse in greedy),
        **describe_training(runs[0], "f1"),
    }
    return row, list(map(write_brackets, trees))


def write_brackets(tree: Tree) -> str:
    """Write the brackets of a parse without its words, which belong to the treebank."""
    return " ".join(linearize(tree, "vinyals"))


def compare_trees(gold: list[Tree], trees: list[Tree], grammar: TreeScore) -> dict[str, Any]:
    """Score trees with intervals, and compare them with the trees of a grammar."""
    score = score_trees(gold, trees)
    (test,) = compare([score.statistics()], [grammar.statistics()], "bootstrap", Resampling())
    return {
        **with_interval(score),
        "up_to_40": score.up_to(40).f1,
        "grammar": {
            "f1": test.score,
            "difference": test.difference,
            "interval": list(test.interval),
            "p_value": test.p_value,
        },
    }


def with_interval(score: TreeScore) -> dict[str, Any]:
    """Convert a score to JSON values, with its 95% interval over sentences."""
    (interval,) = confidence_intervals([score.statistics()], Resampling())
    return {**score.to_dict(), "interval": list(interval)}


def body(record: Record) -> str:
    """Format the page as Markdown."""
    grammars = measurements_of("pcfg")
    tables = [
        f"## {title}\n\n{_table(bank, record.measurements, grammars[bank])}"
        for title, bank in (
            ("The Wall Street Journal sample of the Penn Treebank", "wsj"),
            ("The CRAFT treebank", "craft"),
        )
    ]
    return "\n\n".join([_HEAD, *tables, _TAIL])


def _table(bank: str, rows: dict[str, Any], grammar: dict[str, Any]) -> str:
    """Lay out the rows of a treebank: floors, grammars, parsers and ensembles."""
    baselines = [(kind, "", row) for kind, row in grammar["floors"].items()]
    titles = ("vanilla grammar (PCFG)", "grammar with the phrase above in each label")
    baselines += [
        (titles[row.get("parents", False)], f"{row['trees']:,}", row) for row in grammar["grammar"]
    ]
    shown = [_scores(row) | {"title": title, "trees": trees} for title, trees, row in baselines]
    for name, system in (SYSTEMS | ENSEMBLES).items():
        first = SYSTEMS[members_of(name)[0]]
        if first.treebank == bank and name in rows:
            count = (name in SYSTEMS and first.trees) or grammar["train"]
            shown.append(_scores(rows[name]) | {"title": system.title, "trees": f"{count:,}"})
    return table(
        " | trees | F1 | 95% interval | up to 40 words | minus the grammar of all trees "
        "| malformed",
        "{title} | {trees} | {f1:.1f} | {range} | {short} | {above} | {malformed}",
        shown,
    )


def _scores(row: dict[str, Any]) -> dict[str, Any]:
    """Format the scores of a row; grammars and floors have fewer scores."""
    texts = {"range": "", "above": "", "malformed": ""}
    if "interval" in row:
        above = "{difference:+.1f} ({interval[0]:+.1f} to {interval[1]:+.1f})"
        texts = {
            "range": "{interval[0]:.1f} to {interval[1]:.1f}".format_map(row),
            "above": above.format_map(row["grammar"]),
            "malformed": f"{100 * row['malformed_when_free'] / row['sentences']:.1f}%",
        }
    short = f"{row['up_to_40']:.1f}" if "up_to_40" in row else ""
    return row | texts | {"short": short}


PAGE = ResultPage("parsing", "Constituency parsing", {"parsing": body})


if __name__ == "__main__":
    main()
