"""
Reproduction of Table 3: scaled-down rows, trained on one text for the same number of steps.

Widths are a quarter of the paper's (an eighth on the built-in grammar), and there are half as many
layers; heads, dropout and label smoothing are the paper's. The big model takes three times as many
steps, as in the paper. Two more seeds of the base row show how much training runs of the same model
differ.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from heedful.config.recipes import recipe
from heedful.experiments.corpus import TableCorpus
from heedful.experiments.estimate import Noise, chance_of, rank_correlation
from heedful.experiments.measured import MeasuredSystem
from heedful.experiments.page import LEARNED, Rows, learned_nothing, markdown, write_table
from heedful.experiments.plan import describe
from heedful.experiments.report import RISING, STILL_LEARNS, plain, still_learns
from heedful.experiments.run import train_all
from heedful.experiments.system import TableSystem
from heedful.experiments.task import TableTask
from heedful.visualise.published import PublishedPanel, PublishedPoint, draw_published
from heedful.visualise.report_page import ReportPage

RECIPE = "multi30k"
COMMON = (
    "train.batch_tokens=1024",
    "train.schedule=cosine",
    "train.learning_rate=1.5e-3",
    "train.clip_norm=1",
)
PICTURE_NOTE = (
    "Each point is a row of the table; the band is the range that other seeds of the base row "
    "would reach."
)
_WIDTH, _LAYERS = 4, 2
_PARTS = {4: "a quarter", 8: "an eighth"}
_SEEDS = (2, 3)
_FEWEST_RANKED = 3
_ONE_DECIMAL = 0.095
"""The smallest standard deviation that is shown with one decimal; smaller ones have two."""
_BIG_TIMES = 3  # 300,000 steps instead of 100,000


class PublishedRow(NamedTuple):
    """A row of the paper's Table 3: newstest2013, English-German."""

    name: str
    """The row's recipe, without the prefix `table3-`."""
    title: str
    perplexity: float
    bleu: float


PUBLISHED = (
    PublishedRow("base", "base", 4.92, 25.8),
    PublishedRow("a-1", "(A) 1 head", 5.29, 24.9),
    PublishedRow("a-4", "(A) 4 heads", 5.00, 25.5),
    PublishedRow("a-16", "(A) 16 heads", 4.91, 25.8),
    PublishedRow("a-32", "(A) 32 heads", 5.01, 25.4),
    PublishedRow("b-16", "(B) keys of 16", 5.16, 25.1),
    PublishedRow("b-32", "(B) keys of 32", 5.01, 25.4),
    PublishedRow("c-layers-2", "(C) 2 layers", 6.11, 23.7),
    PublishedRow("c-layers-4", "(C) 4 layers", 5.19, 25.3),
    PublishedRow("c-layers-8", "(C) 8 layers", 4.88, 25.5),
    PublishedRow("c-width-256", "(C) width 256", 5.75, 24.5),
    PublishedRow("c-width-1024", "(C) width 1,024", 4.66, 26.0),
    PublishedRow("c-ff-1024", "(C) feed-forward 1,024", 5.12, 25.4),
    PublishedRow("c-ff-4096", "(C) feed-forward 4,096", 4.75, 26.2),
    PublishedRow("d-dropout-0.0", "(D) dropout 0.0", 5.77, 24.6),
    PublishedRow("d-dropout-0.2", "(D) dropout 0.2", 4.95, 25.5),
    PublishedRow("d-smoothing-0.0", "(D) smoothing 0.0", 4.67, 25.3),
    PublishedRow("d-smoothing-0.2", "(D) smoothing 0.2", 5.47, 25.7),
    PublishedRow("e-learned", "(E) learned positions", 4.92, 25.7),
    PublishedRow("big", "big", 4.33, 26.4),
)


def scale_recipe(name: str) -> tuple[str, ...]:
    """Return the settings of a row, scaled down from its recipe."""
    config = recipe(f"table3-{name}")
    model = config.model
    widths = {
        "d_model": model.d_model,
        "d_ff": model.d_ff,
        "d_k": model.d_k or model.d_model // model.heads,
        "d_v": model.d_v or model.d_model // model.heads,
    }
    layers = {"encoder_layers": model.encoder_layers, "decoder_layers": model.decoder_layers}
    settings: dict[str, object] = {
        **{key: width // _WIDTH for key, width in widths.items()},
        **{key: count // _LAYERS for key, count in layers.items()},
        "heads": model.heads,
        "dropout": model.dropout,
        "positions": model.positions,
    }
    return (
        *(f"model.{key}={value}" for key, value in settings.items()),
        f"train.label_smoothing={config.train.label_smoothing}",
    )


_ROWS = tuple(
    TableSystem(
        row.name,
        row.title,
        scale_recipe(row.name),
        times=_BIG_TIMES if row.name == "big" else 1,
    )
    for row in PUBLISHED
)
SYSTEMS = (*_ROWS, *(_ROWS[0].with_seed(seed) for seed in _SEEDS))


@dataclass(frozen=True)
class Table3:
    """The published rows, and the measured rows."""

    systems: tuple[MeasuredSystem, ...]
    """All or some of `SYSTEMS`, including at least two training runs of the base row."""
    text: str
    narrow: int = 1
    """Additional factor by which the widths are divided on this text."""
    planned: tuple[TableSystem, ...] = SYSTEMS
    """The rows that the table should have."""

    @property
    def seeds(self) -> list[MeasuredSystem]:
        """The training runs of the base row."""
        names = ("base", *(f"base-{seed}" for seed in _SEEDS))
        return [system for system in self.systems if system.name in names]

    @property
    def noises(self) -> tuple[Noise, Noise]:
        """The noise of perplexity and BLEU between training runs of the base row."""
        return (
            Noise.of([_perplexity(system) for system in self.seeds]),
            Noise.of([system.valid_bleu for system in self.seeds]),
        )

    @property
    def pairs(self) -> list[tuple[PublishedRow, MeasuredSystem]]:
        """The published rows that were measured; the base row has the means of its seeds."""
        by_name = {system.name: system for system in self.systems}
        if base := by_name.get("base"):
            perplexity, bleu = (noise.mean for noise in self.noises)
            by_name["base"] = replace(base, perplexity=perplexity, valid_bleu=bleu)
        return [(row, by_name[row.name]) for row in PUBLISHED if row.name in by_name]

    @property
    def compared(self) -> list[tuple[PublishedRow, MeasuredSystem]]:
        """Pairs whose system has learned something; empty if a base run has learned nothing."""
        if min(system.valid_bleu for system in self.seeds) < LEARNED:
            return []
        return [pair for pair in self.pairs if pair[1].valid_bleu >= LEARNED]

    @property
    def rows(self) -> Rows:
        """The table; a star marks numbers farther from the base row than other seeds would be."""
        rows: Rows = [("row", "weights", "perplexity", "published", "BLEU", "published")]
        for row, system in self.pairs:
            perplexity, bleu = self._cells(system)
            bleu += RISING if self._still_learns(system) else ""
            title = row.title
            if system.name == "base":
                title = f"{row.title}, {len(self.seeds)} seeds"
                spread = [f" ± {noise.deviation:.{_digits(noise)}f}" for noise in self.noises]
                perplexity, bleu = perplexity + spread[0], bleu + spread[1]
            cells = perplexity, f"{row.perplexity:.2f}", bleu, f"{row.bleu:.1f}"
            rows.append((title, f"{system.parameters:,}", *cells))
        return rows

    def _still_learns(self, system: MeasuredSystem) -> bool:
        """Tell whether a row was still learning; the base row is judged by its mean over seeds."""
        return still_learns(self.seeds if system.name == "base" else [system])

    @property
    def details(self) -> Rows:
        """Every training, with its steps and the interval of its BLEU over sentences."""
        rows: Rows = [("row", "steps", "perplexity", "BLEU", "95% interval")]
        for system in self.systems:
            low, high = system.valid_interval
            numbers = f"{system.steps:,}", f"{_perplexity(system):.2f}", f"{system.valid_bleu:.1f}"
            rows.append((system.title, *numbers, f"{low:.1f} to {high:.1f}"))
        return rows

    @property
    def verdict(self) -> str:
        """A summary of the table in one paragraph."""
        rising = any(self._still_learns(system) for _, system in self.pairs)
        marks = f"{STILL_LEARNS} " if rising else ""
        if not self.compared:
            return (
                "No rows are compared, because a training run of the base row has learned "
                f"nothing useful. {marks}"
            ).rstrip()
        perplexity, bleu = self.noises
        others = [system for _, system in self.compared if system.name != "base"]
        apart = sum(map(self._differs, others))
        return (
            "The numbers of the base row are means over seeds, ± their standard deviation. A "
            f"star marks a number that differs from the mean of the base row's {len(self.seeds)} "
            "training runs by more than another seed would: by more than "
            f"{perplexity.margin:.{_digits(perplexity)}f} in perplexity or "
            f"{bleu.margin:.{_digits(bleu)}f} in BLEU. {apart} of {len(others)} rows have stars. "
            f"{marks}Row names give the paper's sizes, but our models are "
            f"{_PARTS[_WIDTH * self.narrow]} as wide and half as deep, and are trained on a small "
            f"text. Rank correlation with the published rows: {_with_sign(self.correlations[0])} "
            f"for perplexity, {_with_sign(self.correlations[1])} for BLEU."
        )

    @property
    def correlations(self) -> tuple[float | None, float | None]:
        """
        Rank correlations of perplexity and BLEU with the published numbers (Spearman).

        None if there are too few rows, or if all numbers are equal.
        """
        return _correlations(self.compared)

    @property
    def conclusions(self) -> list[str]:
        """The conclusions that the table allows, and their limits."""
        perplexity, bleu = self.noises
        apart = [system.title for _, system in self.compared if self._differs(system)]
        names = {system.name for system in self.systems}
        others = [row for row, _ in self.pairs if row.name != "base"]
        alike = _correlations([pair for pair in self.compared if pair[0].name != "big"])
        missing = [row.title for row in self.planned if row.name not in names]
        first = [
            *([f"Not trained: {'; '.join(missing)}."] if missing else []),
            *learned_nothing(
                system.title for system in self.systems if system.valid_bleu < LEARNED
            ),
        ]
        if not self.compared:
            return first
        without_big = (
            "Without the big model, which takes three times the steps, the rank correlations are "
            f"{_with_sign(alike[0])} and {_with_sign(alike[1])}."
        )
        return [
            *first,
            f"{len(self.seeds)} training runs of the base row have perplexity "
            f"{perplexity.mean:.2f} with a standard deviation of {perplexity.deviation:.3f}, and "
            f"BLEU {bleu.mean:.2f} with a standard deviation of {bleu.deviation:.2f}. By chance, "
            f"one number in twenty gets a star, and the table has {2 * len(others)} numbers "
            "besides the base row. They are all judged by the same standard deviation, which is "
            f"estimated from {len(self.seeds)} training runs. So if one star is due to chance, "
            "others probably are, too.",
            f"Rows with stars: {'; '.join(apart) or 'none'}.",
            *([without_big] if "big" in names else []),
            *_by_chance(self.compared),
        ]

    def to_markdown(self) -> str:
        """Lay the table out as a page."""
        head = f"# Table 3\n\nPublished and measured ({self.text}):"
        parts = [head, markdown(self.rows), self.verdict, *self.conclusions, markdown(self.details)]
        return "\n\n".join(parts) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {
            "published": [row._asdict() for row in PUBLISHED],
            "here": plain(self.systems),
            "correlations": dict(zip(("perplexity", "bleu"), self.correlations, strict=True)),
            "text": self.text,
            "verdict": self.verdict,
            "conclusions": self.conclusions,
        }

    def draw(self, out: Path) -> None:
        """Plot measured against published perplexity and BLEU."""
        sheet = ReportPage(
            "Table 3: published and measured",
            PICTURE_NOTE,
            self.rows,
        )
        panels = []
        for title, noise, values in zip(
            ("perplexity", "BLEU"),
            self.noises,
            (
                [(row.title, row.perplexity, _perplexity(system)) for row, system in self.pairs],
                [(row.title, row.bleu, system.valid_bleu) for row, system in self.pairs],
            ),
            strict=True,
        ):
            points = tuple(PublishedPoint(*value) for value in values)
            panels.append(
                PublishedPanel(
                    title, points, (noise.mean - noise.margin, noise.mean + noise.margin)
                )
            )
        draw_published(panels, out, sheet)

    def _cells(self, system: MeasuredSystem) -> Iterator[str]:
        """Format a system's numbers, with their stars."""
        is_compared = any(system.name == compared.name for _, compared in self.compared)
        for noise, value in self._against(system):
            star = "*" if is_compared and noise.exceeds(value) else ""
            yield f"{value:.{_digits(noise)}f}{star}"

    def _differs(self, system: MeasuredSystem) -> bool:
        """Tell whether a score of a system is beyond the noise."""
        return any(noise.exceeds(value) for noise, value in self._against(system))

    def _against(self, system: MeasuredSystem) -> list[tuple[Noise, float]]:
        """Pair each score of a system with the noise of this score."""
        return list(zip(self.noises, (_perplexity(system), system.valid_bleu), strict=True))


def _digits(noise: Noise) -> int:
    """Return the number of decimals: one, or two for a small standard deviation."""
    return 1 if noise.deviation >= _ONE_DECIMAL else 2


def _with_sign(correlation: float | None) -> str:
    return "none (too few rows or equal rows)" if correlation is None else f"{correlation:+.2f}"


def _correlations(
    pairs: Sequence[tuple[PublishedRow, MeasuredSystem]],
    measure: Callable[[ArrayLike, ArrayLike], float | None] = rank_correlation,
) -> tuple[float | None, float | None]:
    """Correlate the perplexity and BLEU of rows with the published numbers."""
    if len(pairs) < _FEWEST_RANKED:
        return None, None
    rows, ours = zip(*pairs, strict=True)
    return (
        measure([row.perplexity for row in rows], [_perplexity(system) for system in ours]),
        measure([row.bleu for row in rows], [system.valid_bleu for system in ours]),
    )


def _by_chance(pairs: Sequence[tuple[PublishedRow, MeasuredSystem]]) -> list[str]:
    """State how often a random order correlates as strongly; empty without a correlation."""
    perplexity, bleu = _correlations(pairs, chance_of)
    if perplexity is None or bleu is None:
        return []
    return [
        f"In {100 * perplexity:.0f}% of 10,000 random orders of all rows, the rank correlation of "
        f"perplexity is at least as strong as the measured one; for BLEU, in {100 * bleu:.0f}%. "
        "Above 5%, chance may explain the measured order."
    ]


def _perplexity(system: MeasuredSystem) -> float:
    """Return the perplexity of a system that is not an ensemble."""
    assert system.perplexity is not None
    return system.perplexity


def train_rows(
    corpus: TableCorpus,
    out: Path,
    budget: float,
    *,
    names: Sequence[str] = (),
    plan: Path | None = None,
    threads: int = 0,
    say: Callable[[str], None] = lambda _: None,
) -> list[MeasuredSystem]:
    """
    Train and score rows, or continue from `out`.

    `names`: the rows of `SYSTEMS` to train; all if empty. `budget`: the time budget in seconds.
    `plan`: the plan of an earlier table, which is repeated with its budget and threads.
    """
    systems = [system for system in SYSTEMS if not names or system.name in names]
    common = (*COMMON, f"data.vocabulary_size={corpus.vocabulary}")
    task = TableTask(RECIPE, common, systems, corpus, out, "steps")
    return train_all(task, budget, plan=plan, threads=threads, say=say)


def make_table3(
    corpus: TableCorpus,
    out: Path,
    budget: float,
    *,
    plan: Path | None = None,
    threads: int = 0,
    say: Callable[[str], None] = lambda _: None,
) -> Table3:
    """Train and score every row as `train_rows` does, and write the table."""
    measured = train_rows(corpus, out, budget, plan=plan, threads=threads, say=say)
    table = Table3(tuple(measured), describe(corpus), corpus.narrow)
    write_table(out, "table3", table.to_markdown(), table.to_dict())
    table.draw(out / "table3.png")
    return table
