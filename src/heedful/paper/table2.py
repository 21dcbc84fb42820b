"""
Reproduction of Table 2: scaled-down systems of the paper, trained on one text for the same time.

All systems have about 4.5 million weights, except the big Transformer, which is twice as wide as
the base model, as in the paper. They share batches and optimizer; all but Deep-Att share subwords,
and all but GNMT + RL share the schedule. They differ in layers, connections, attention, experts and
learning rates. Deep-Att reads words instead of subwords, and replaces unknown words in its
translations.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from heedful.errors import SettingError
from heedful.evaluation.cost import SUSTAINED_TFLOPS, paper_flops
from heedful.experiments.budget import why_left_out
from heedful.experiments.corpus import TableCorpus
from heedful.experiments.measured import MeasuredSystem
from heedful.experiments.page import (
    LEARNED,
    Rows,
    ScoreDifference,
    learned_nothing,
    markdown,
    write_table,
)
from heedful.experiments.plan import Plan, describe
from heedful.experiments.report import (
    STILL_LEARNS,
    SURE,
    all_differences,
    by_seed,
    cost_rows,
    difference_rows,
    plain,
    seed_spread,
    still_learns,
    training_rows,
)
from heedful.experiments.run import PLAN, train_all
from heedful.experiments.system import TableSystem
from heedful.experiments.task import TableTask
from heedful.visualise.cost_curves import CostCurve, draw_cost_curves
from heedful.visualise.report_page import ReportPage

RECIPE = "multi30k"
COMMON = (
    "model.dropout=0.2",
    "train.batch_tokens=1024",
    "train.batch_counting=padded",  # similar lengths share a batch, as in the paper and in timings
    "train.schedule=cosine",
    "train.learning_rate=1.5e-3",
    "train.clip_norm=1",
)
_RECURRENT = (
    *("model.encoder=recurrent", "model.decoder=recurrent", "model.recurrent.query=previous"),
    *("model.recurrent.feed=context", "model.recurrent.readout=state"),
)
# In trials, GNMT and MoE learned attention only if it was guided in the first steps. Otherwise
# their decoders attended almost only to the first state of the encoder: docs/results/tuning.md.
_GUIDED = ("train.guided_attention=1",)
_DEEP_ATT = (
    *_RECURRENT,
    *("model.d_model=128", "model.recurrent.hidden_size=112"),
    *("model.encoder_layers=5", "model.decoder_layers=4"),
    *("model.recurrent.direction=interleaved", "model.recurrent.fast_forward=true"),
    *("model.recurrent.score=additive", "model.recurrent.start=zero"),
    *("model.recurrent.embedding_dropout=0.0", "model.tie_embeddings=none"),
    *("search.length_penalty=none", "model.recurrent.initialisation=glorot", *_GUIDED),
)
# In trials of 300 steps with the ranges 0.1, 0.2 and 0.3 and the learning rates 1.5e-3 and 3e-3,
# models with the range 0.2 learned fastest.
_WIDER_START = ("model.recurrent.initial_range=0.2",)
_WORDS = ("data.subwords=word", "data.shared_vocabulary=false")
_GNMT = (
    *_RECURRENT,
    *("model.d_model=200", "model.encoder_layers=4", "model.decoder_layers=4"),
    *("model.recurrent.direction=first-bidirectional", "model.recurrent.residual_from=3"),
    *("model.recurrent.score=additive", "model.recurrent.feed_layers=all"),
    *("model.recurrent.start=final", "search.length_penalty=gnmt:0.2"),
    *("search.coverage_penalty=0.2", *_WIDER_START, *_GUIDED),
)
_OF_ONE = {
    "gnmt-rl": "GNMT + RL continues the training of GNMT for the same amount of time.",
    "gnmt-ensemble": "The GNMT ensemble consists of models trained without reward, and searches "
    "without the coverage penalty.",
}
"""Notes on systems, by name."""
_RESERVATION = (
    "Small models on a small corpus may rank differently from the published systems. A number "
    "after ± is half the width of a 95% interval over sentences."
)
_THREE_SEEDS = (
    "An ensemble averages the probabilities of three models that differ in their seed; the "
    "published ensembles have eight models."
)
_AT_EQUAL_COST = (
    "The last column is validation BLEU of greedy translations by single checkpoints, as in the "
    "picture. It compares the systems at the same number of operations: the total of the cheapest "
    "training run. At this number, the cheapest run has ended, but the learning rates of the "
    "other runs have not yet fallen as far."
)
_UNKNOWN_COST = "Operations are not shown if a training run did not count all of them."
_DIFFERENCES = (
    f"BLEU of the row minus BLEU of the column; {SURE} marks differences whose 95% interval over "
    "sentences excludes zero."
)
_TRAININGS = (
    "Nats of attention: how much the loss per token rises at the last validation if attention is "
    "made uniform; empty if there is no attention or the number was not recorded."
)
_CONVS2S = (
    *("model.encoder=convs2s", "model.decoder=convs2s", "model.d_model=256"),
    *("model.positions=learned", "model.convs2s.encoder_layers=4x(256,3)"),
    *("model.convs2s.decoder_layers=3x(256,3)", "search.length_penalty=power:1"),
)
_MOE = (
    *_RECURRENT,
    *("model.d_model=152", "model.encoder_layers=3", "model.decoder_layers=2"),
    *("model.recurrent.hidden_size=304", "model.recurrent.projection_size=152"),
    *("model.recurrent.direction=forward", "model.recurrent.residual_from=1"),
    *("model.recurrent.score=product", "model.recurrent.attention_size=152"),
    *("model.recurrent.start=zero", "model.experts.count=8", "model.experts.per_token=2"),
    *("model.experts.gating=balanced", "model.experts.d_ff=304", "model.experts.sigmoid=true"),
    *("model.experts.encoder_layers=2", "model.experts.decoder_layers=1", *_WIDER_START),
    *_GUIDED,
)
_BASE = (
    *("model.d_model=208", "model.d_ff=832", "model.heads=4"),
    *("model.encoder_layers=3", "model.decoder_layers=3"),
)
_BIG = (
    *("model.d_model=416", "model.d_ff=1664", "model.heads=8"),
    *("model.encoder_layers=3", "model.decoder_layers=3"),
)
_REWARD_STEPS = "The steps of GNMT + RL are those with reward; its minutes include GNMT's."
_REWARD = (
    *("train.objective=reward", "train.guided_attention=0"),
    *("train.schedule=constant", "train.learning_rate=1e-4"),
)
# docs/results/reward.md: 150 steps take 6.4 minutes with reward, and 0.2 minutes with likelihood.
_REWARD_SLOWDOWN = 32.0

# On the built-in grammar, 500 steps of GNMT and 550 of Deep-Att reach 50 BLEU.
_FEWEST_OF_DEEP = 600

_PAIRS = (("en", "de"), ("en", "fr"))
"""Language pairs of the published scores, in their order."""

# For each system, the best of four learning rates by perplexity in trials of equal time:
# docs/results/tuning.md. Deep-Att has its second-best rate, because at 3e-3 it diverges after 1,000
# steps.
LEARNING_RATES = {
    "bytenet": "6e-3",
    "deep-att": "1.5e-3",
    "gnmt": "6e-3",
    "convs2s": "6e-3",
    "moe": "6e-3",
    "base": "1.5e-3",
    "big": "7.5e-4",
}


def _with_rate(system: TableSystem) -> TableSystem:
    """Give a system its learning rate, unless it continues another system."""
    if system.after:
        return system
    rate = f"train.learning_rate={LEARNING_RATES[system.name]}"
    return system._replace(settings=(*system.settings, rate))


SYSTEMS = tuple(
    _with_rate(system)
    for system in (
        TableSystem(
            "bytenet",
            "ByteNet",
            (
                *("model.encoder=bytenet", "model.decoder=bytenet", "model.d_model=256"),
                *("model.encoder_layers=15", "model.decoder_layers=14"),
            ),
        ),
        TableSystem(
            *("deep-att", "Deep-Att + PosUnk", _DEEP_ATT),
            replace_unknown=True,
            fewest=_FEWEST_OF_DEEP,
        ),
        TableSystem("gnmt", "GNMT", _GNMT, fewest=_FEWEST_OF_DEEP),
        TableSystem(
            "gnmt-rl", "GNMT + RL", (*_GNMT, *_REWARD), after="gnmt", slowdown=_REWARD_SLOWDOWN
        ),
        TableSystem("convs2s", "ConvS2S", _CONVS2S),
        TableSystem("moe", "MoE", _MOE),
        TableSystem("base", "Transformer (base)", _BASE),
        TableSystem("big", "Transformer (big)", _BIG),
    )
)
_SEEDS = (2, 3)


def _ensemble(first: TableSystem) -> tuple[TableSystem, ...]:
    """List two more seeds of a system, and the ensemble of all three seeds."""
    seeds = [first.with_seed(seed) for seed in _SEEDS]
    members = (first.name, *(system.name for system in seeds))
    together = first._replace(
        name=f"{first.name}-ensemble",
        title=f"{first.title}, ensemble",
        settings=(),
        members=members,
    )
    return *seeds, together


ENSEMBLES = tuple(
    system
    for first in SYSTEMS
    if first.name in ("deep-att", "gnmt", "convs2s", "base")
    for system in _ensemble(first)
)
"""Seeds and ensemble of each system that is an ensemble in the paper, and of the base model."""


class _Cost(NamedTuple):
    """Duration and devices of a published training."""

    days: float
    devices: int
    kind: str

    @property
    def flops(self) -> float:
        """The training cost in operations, by the paper's formula."""
        return paper_flops(24 * self.days, self.devices, SUSTAINED_TFLOPS[self.kind])


class PublishedSystem(NamedTuple):
    """A row of the paper's Table 2; None stands for an empty cell."""

    name: str
    bleu: tuple[float | None, float | None]
    """BLEU for English-German and English-French."""
    printed: tuple[float | None, float | None]
    """Training cost in operations, as printed."""
    costs: tuple[_Cost | None, _Cost | None] = (None, None)
    """The durations and devices from which the printed costs are computed."""
    ensemble_of: str = ""
    """The system whose printed cost counts eight times, once for each member."""

    def recomputed(self, side: int) -> float | None:
        """Recompute a cost by the paper's formula; None if its terms are unknown."""
        cost = self.costs[side]
        if cost is not None:
            return cost.flops
        single = next((row for row in PUBLISHED if row.name == self.ensemble_of), None)
        printed = None if single is None else single.printed[side]
        return None if printed is None else _MEMBERS * printed


_MEMBERS = 8
# Sources of days and devices: Shazeer et al. 2017 for GNMT and the mixtures, Zhou et al. 2016 for
# Deep-Att (10 days on 4 to 8 machines with 4 devices: 8 machines are assumed), Gehring et al. for
# ConvS2S.
PUBLISHED = (
    PublishedSystem("ByteNet", (23.75, None), (None, None)),
    PublishedSystem(
        "Deep-Att + PosUnk", (None, 39.2), (None, 1.0e20), (None, _Cost(10, 32, "K40"))
    ),
    PublishedSystem(
        "GNMT + RL", (24.6, 39.92), (2.3e19, 1.4e20), (_Cost(1, 96, "K80"), _Cost(6, 96, "K80"))
    ),
    PublishedSystem(
        "ConvS2S", (25.16, 40.46), (9.6e18, 1.5e20), (_Cost(18.5, 1, "M40"), _Cost(37, 8, "M40"))
    ),
    PublishedSystem(
        "MoE", (26.03, 40.56), (2.0e19, 1.2e20), (_Cost(1, 64, "K40"), _Cost(6, 64, "K40"))
    ),
    PublishedSystem(
        "Deep-Att + PosUnk, ensemble", (None, 40.4), (None, 8.0e20), ensemble_of="Deep-Att + PosUnk"
    ),
    PublishedSystem(
        "GNMT + RL, ensemble", (26.30, 41.16), (1.8e20, 1.1e21), ensemble_of="GNMT + RL"
    ),
    PublishedSystem("ConvS2S, ensemble", (26.36, 41.29), (7.7e19, 1.2e21), ensemble_of="ConvS2S"),
    PublishedSystem(
        "Transformer (base)", (27.3, 38.1), (3.3e18, 3.3e18), (_Cost(0.5, 8, "P100"),) * 2
    ),
    PublishedSystem(
        "Transformer (big)", (28.4, 41.8), (2.3e19, 2.3e19), (_Cost(3.5, 8, "P100"),) * 2
    ),
)


@dataclass(frozen=True)
class Table2:
    """The published rows, and the measured systems."""

    systems: tuple[MeasuredSystem, ...]
    differences: tuple[ScoreDifference, ...]
    text: str
    """Names and sizes of the files on which the systems were trained and scored."""
    left_out: tuple[str, ...] = ()
    """The reasons why systems were not trained."""

    @property
    def published_rows(self) -> Rows:
        """The paper's table; next to each printed cost is the cost by the paper's formula."""
        rows: Rows = [
            (
                *("system", "BLEU en-de", "BLEU en-fr", "cost en-de", "by formula"),
                *("cost en-fr", "by formula"),
            )
        ]
        for row in PUBLISHED:
            costs = [
                f"{cost:.1e}" if cost else ""
                for side in (0, 1)
                for cost in (row.printed[side], row.recomputed(side))
            ]
            scores = (f"{score}" if score else "" for score in row.bleu)
            rows.append((row.name, *scores, *costs))
        return rows

    @property
    def rows(self) -> Rows:
        """The measured systems, with the published BLEU for the same pair of languages."""
        pair = tuple(file.partition(":")[0].rpartition(".")[2] for file in self.text.split()[:2])
        if pair not in _PAIRS:
            return cost_rows(self.systems)
        side = _PAIRS.index(pair)
        scores = {row.name: f"{row.bleu[side]}" for row in PUBLISHED if row.bleu[side]}
        return cost_rows(self.systems, ("published BLEU", scores))

    @property
    def trainings(self) -> list[str]:
        """A table of all training runs, and the meaning of its last column."""
        has_reward = any(system.name == "gnmt-rl" for system in self.systems)
        note = f"{_TRAININGS} {_REWARD_STEPS}" if has_reward else _TRAININGS
        return [note, markdown(training_rows(self.systems))]

    @property
    def marks(self) -> list[str]:
        """The meaning of the marks in the table; empty if the table has no marks."""
        return [STILL_LEARNS] if any(map(still_learns, by_seed(self.systems))) else []

    @property
    def reservations(self) -> list[str]:
        """Notes on the rows, and on conclusions that they do not allow."""
        weak = (system.title for system in self.systems if system.bleu < LEARNED)
        names = {system.name for system in self.systems}
        spread = seed_spread(self.systems)
        between_seeds = (
            "Numbers in parentheses are the range over seeds, which differ by up to "
            f"{spread:.1f} BLEU here."
        )
        return [
            *self.left_out,
            *learned_nothing(weak),
            *self.marks,
            *(note for name, note in _OF_ONE.items() if name in names),
            *([_THREE_SEEDS] if any(name.endswith("-ensemble") for name in names) else []),
            *([] if all(system.flops for system in self.systems) else [_UNKNOWN_COST]),
            _AT_EQUAL_COST,
            _RESERVATION,
            between_seeds if spread else "Another seed changes BLEU, too.",
        ]

    @property
    def matrix(self) -> list[str]:
        """The differences between systems and the meaning of their marks; may be empty."""
        if not self.differences:
            return []
        seeds = " If a system has several seeds, its first seed is compared."
        note = f"{_DIFFERENCES}{seeds if seed_spread(self.systems) else ''}"
        return [note, markdown(difference_rows(self.differences))]

    def to_markdown(self) -> str:
        """Lay the table out as a page."""
        return (
            "\n\n".join(
                [
                    "# Table 2",
                    "Published:",
                    markdown(self.published_rows),
                    f"Here ({self.text}):",
                    markdown(self.rows),
                    *self.matrix,
                    " ".join(self.reservations),
                    *self.trainings,
                ]
            )
            + "\n"
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        published = [
            {
                "name": row.name,
                "bleu": row.bleu,
                "printed": row.printed,
                "recomputed": [row.recomputed(side) for side in (0, 1)],
            }
            for row in PUBLISHED
        ]
        return {
            "published": published,
            "here": plain(self.systems),
            "text": self.text,
            "differences": [asdict(pair) for pair in self.differences],
            "reservations": self.reservations,
        }

    def draw(self, out: Path) -> None:
        """Plot BLEU against operations."""
        sheet = ReportPage(
            "Table 2: BLEU against operations",
            "Validation BLEU during training, against the number of operations so far. A line is "
            "the mean of a system's seeds, and a band is their range.",
            self.rows,
        )
        curves = [
            CostCurve.mean(
                group[0].title,
                [[point.flops for point in system.curve] or [system.flops] for system in group],
                [[point.bleu for point in system.curve] or [system.valid_bleu] for system in group],
            )
            for group in by_seed(self.systems)
            if group[0].flops
        ]
        draw_cost_curves(curves, "operations of the training", "validation BLEU", out, sheet)


def _choose(
    names: Sequence[str], known: Sequence[TableSystem] = SYSTEMS
) -> tuple[TableSystem, ...]:
    """Choose systems by name; unknown names and missing earlier runs raise `SettingError`."""
    by_name = {system.name: system for system in known}
    for name in names:
        if name not in by_name:
            raise SettingError(f"--system must be one of {', '.join(by_name)}, but is {name!r}.")
    chosen = tuple(system for system in known if not names or system.name in names)
    for system in chosen:
        for needed in (*filter(None, [system.after]), *system.members):
            if names and needed not in names:
                raise SettingError(
                    f"--system {system.name} needs the training of {needed}; give --system "
                    f"{needed} too."
                )
    return chosen


def table2_task(corpus: TableCorpus, out: Path, systems: Sequence[TableSystem]) -> TableTask:
    """Describe the training runs of systems on a text."""
    common = (*COMMON, f"data.vocabulary_size={corpus.vocabulary}")
    words = (*_WORDS, f"data.vocabulary_size={corpus.word_vocabulary()}")
    systems = tuple(
        system._replace(settings=(*system.settings, *words)) if system.replace_unknown else system
        for system in systems
    )
    return TableTask(RECIPE, common, systems, corpus, out, "time")


def make_table2(
    corpus: TableCorpus,
    out: Path,
    budget: float,
    *,
    names: Sequence[str] = (),
    ensembles: bool = False,
    known: Sequence[TableSystem] = SYSTEMS,
    plan: Path | None = None,
    threads: int = 0,
    say: Callable[[str], None] = lambda _: None,
) -> Table2:
    """
    Train and score systems, or continue from `out`.

    `names`: the systems of `known` to train; all if empty. `budget`: the time budget in seconds.
    `plan`: the plan of an earlier table, which is repeated with its budget and threads.
    """
    systems = _choose(names, known)
    if ensembles:
        chosen = {system.name for system in systems}
        systems += tuple(system for system in ENSEMBLES if system.name.rpartition("-")[0] in chosen)
    task = table2_task(corpus, out, systems)
    measured = train_all(task, budget, plan=plan, threads=threads, say=say)
    planned = Plan.read(out / PLAN)
    left_out = why_left_out(task.systems, planned.left_out, planned.budget)
    differences = tuple(all_differences(measured, corpus, out))
    table = Table2(tuple(measured), differences, describe(corpus), tuple(left_out.values()))
    write_table(out, "table2", table.to_markdown(), table.to_dict())
    table.draw(out / "table2.png")
    return table
