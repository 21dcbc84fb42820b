"""
Parts that later Transformers have, each added to the base row of Table 3.

    python -m benchmarks.later_parts [--system NAME ...] [--runs FOLDER]

Repeats the longer training of the base row (`python -m benchmarks.tables table3-long`) with one
part at a time: the same text, steps, batches and seed. A training takes twenty minutes on one
thread. Recorded runs are not repeated. Writes `docs/results/later-parts.json` and builds the
page from it.
"""

from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.corpora import VOCABULARY, multi30k
from benchmarks.report import ORIGIN, ResultPage, arguments, machine, measurements_of, origins
from benchmarks.table3_long import recorded_table
from heedful.config.load import load_config
from heedful.experiments.estimate import Noise
from heedful.experiments.measured import MeasuredSystem
from heedful.experiments.page import table
from heedful.experiments.plan import Plan, PlannedSystem
from heedful.experiments.record import Record
from heedful.experiments.report import plain
from heedful.experiments.run import train_all
from heedful.experiments.system import TableSystem, count_parameters
from heedful.experiments.task import TableTask
from heedful.paper.table3 import COMMON, RECIPE, scale_recipe


class LaterPart(NamedTuple):
    """A part, with the settings that add it to the base row."""

    title: str
    page: str
    """Name of its explanation."""
    settings: tuple[str, ...]


PARTS = {
    "rotary": LaterPart("rotary position embeddings", "rotary", ("model.positions=rotary",)),
    "shaw": LaterPart("relative position vectors", "shaw", ("model.positions=shaw",)),
    "gated": LaterPart(
        "gated feed-forward network (SwiGLU), as many weights",
        "gated",
        ("model.gated=true", "model.activation=silu", "model.d_ff=341"),
    ),
    "rms-norm": LaterPart("RMS norm", "rms-norm", ("model.norm_kind=rms",)),
    "qk-norm": LaterPart("query-key norm", "qk-norm", ("model.attention.qk_norm=rms",)),
    "two-keys": LaterPart(
        "grouped-query attention, two heads of keys and values",
        "grouped-keys",
        ("model.attention.kv_heads=2",),
    ),
    "one-key": LaterPart("multi-query attention", "grouped-keys", ("model.attention.kv_heads=1",)),
    "shared-layers": LaterPart(
        "six layers that share the weights of three",
        "shared-layers",
        (
            *("model.encoder_layers=6", "model.encoder_sharing=1,2,3,1,2,3"),
            *("model.decoder_layers=6", "model.decoder_sharing=1,2,3,1,2,3"),
        ),
    ),
    "attention-dropout": LaterPart(
        "attention dropout", "attention-dropout", ("model.attention.dropout=0.1",)
    ),
}


def main() -> None:
    """Train the parts that the record lacks, and write the page."""
    parser = arguments(__doc__, "later-parts")
    parser.add_argument("--system", action="append", default=[], choices=[*PARTS])
    options = parser.parse_args()
    for name in options.system or PARTS:
        if name in measurements_of("later-parts").get("here", {}):
            continue
        system = train_part(name, options.runs / name)
        system |= dict(zip(ORIGIN, (options.commit, machine()), strict=True))
        commands = ["python -m benchmarks.later_parts"]
        # read after the training, because another call may have added a part in the meantime
        measured = measurements_of("later-parts").get("here", {})
        here = {"here": measured | {name: system}}
        PAGE.keep("later-parts", here, options.commit, commands=commands)


def train_part(name: str, out: Path) -> dict[str, Any]:
    """Train the base row with a part, and score it on the validation text."""
    text, part = multi30k(out.parent), PARTS[name]
    common = (*COMMON, f"data.vocabulary_size={text.vocabulary}")
    settings = (*scale_recipe("base"), *part.settings)
    task = TableTask(RECIPE, common, [TableSystem(name, part.title, settings)], text, out, "steps")
    plan = plan_of(name)
    out.mkdir(parents=True, exist_ok=True)
    plan.write(out / "earlier.json")
    measured = train_all(
        task, plan.budget, plan=out / "earlier.json", threads=plan.threads, say=print
    )
    return plain(measured)[0]


def plan_of(name: str) -> Plan:
    """Plan a training run with a part from the plan of the base row."""
    recorded = measurements_of("table3-long")["plan"]
    (base,) = [system for system in recorded["systems"] if system["name"] == "base"]
    first = len(COMMON) + 1 + len(scale_recipe("base"))  # and the size of the vocabulary
    settings = (*base["settings"][:first], *PARTS[name].settings, *base["settings"][first:])
    weights = count_parameters(load_config(RECIPE, settings))
    planned = PlannedSystem(**base | {"name": name, "settings": settings, "parameters": weights})
    return Plan(**recorded | {"systems": (planned,), "left_out": ()})


def body(record: Record) -> str:
    """Lay out a row for each part, below the base row."""
    here, table3 = record.measurements["here"], recorded_table()
    base, text = (
        table3.pairs[0][1],
        f"the raw text of Multi30k English-German, with {VOCABULARY:,} subwords",
    )
    perplexity, bleu = table3.noises
    rows = [
        {
            "title": f"the base row, {len(table3.seeds)} seeds",
            **_costs(base),
            "perplexity": f"{perplexity.mean:.2f} ± {perplexity.deviation:.2f}",
            "bleu": f"{bleu.mean:.1f} ± {bleu.deviation:.1f}",
        }
    ]
    for name, measured in here.items():
        system = MeasuredSystem.of({key: measured[key] for key in measured if key not in ORIGIN})
        rows.append(
            {
                "title": f"[{PARTS[name].title}](../explain/{PARTS[name].page}.md)",
                **_costs(system),
                "perplexity": f"{system.perplexity:.2f}{_star(perplexity, system.perplexity)}",
                "bleu": f"{system.valid_bleu:.1f}{_star(bleu, system.valid_bleu)}",
            }
        )
    missing = [part.title for name, part in PARTS.items() if name not in here]
    paragraphs = [
        "Each part is added to the scaled-down base model of [Table 3](tables.md). The model with "
        f"the part is trained with one seed for {base.steps:,} steps on {text}. Text, batches and "
        "learning rate are those of the base model. BLEU is cased, on the validation text, with "
        "beam 4 and the average of the last checkpoints. A star marks a number that differs from "
        f"the mean of the base row's {len(table3.seeds)} seeds by more than another seed would. By "
        f"chance, one number in twenty gets a star, and the table has {2 * len(here)} numbers "
        "besides the base row.",
        table(
            "part | weights | operations | perplexity | BLEU",
            "{title} | {weights:,} | {operations:.2f} | {perplexity} | {bleu}",
            rows,
        ),
        "Operations are those of the whole training, in units of 10^13.",
        *origins({PARTS[name].title: measured for name, measured in here.items()}),
        *([f"Not trained: {'; '.join(missing)}."] if missing else []),
    ]
    return "\n\n".join(paragraphs)


def figures() -> dict[str, str]:
    """Format the scores of the base row and of each part, for the pages that explain the parts."""
    here = measurements_of("later-parts").get("here", {})
    perplexity, bleu = recorded_table().noises
    known = {
        "later-parts.base": f"BLEU {bleu.mean:.1f} ± {bleu.deviation:.1f} and perplexity "
        f"{perplexity.mean:.2f} ± {perplexity.deviation:.2f}"
    }
    for name, row in here.items():
        known[f"later-parts.{name}"] = (
            f"BLEU {row['valid_bleu']:.1f} and perplexity {row['perplexity']:.2f}"
        )
    return known


def _costs(system: MeasuredSystem) -> dict[str, float]:
    return {"weights": system.parameters, "operations": system.flops / 1e13}


def _star(noise: Noise, value: float | None) -> str:
    return "*" if value is not None and noise.exceeds(value) else ""


PAGE = ResultPage("later-parts", "Later parts of the Transformer", {"later-parts": body})


if __name__ == "__main__":
    main()
