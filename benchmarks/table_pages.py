"""The pages of the paper's tables and claims, laid out from their records."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.corpora import VOCABULARY
from benchmarks.report import ResultPage
from benchmarks.table3_long import body as lay_out_long
from heedful.config.load import load_config
from heedful.config.recipes import recipe
from heedful.experiments.measured import MeasuredSystem
from heedful.experiments.page import Rows, ScoreDifference, fold, markdown, table
from heedful.experiments.plan import Plan
from heedful.experiments.record import Record
from heedful.paper.claims.check import INTRODUCTION, RESERVATION, claim_sections
from heedful.paper.claims.statement import Checked
from heedful.paper.table1 import COUNT_HEADING, conclude, describe_times
from heedful.paper.table2 import ENSEMBLES, RECIPE, SYSTEMS, Table2
from heedful.paper.table3 import PICTURE_NOTE, Table3
from heedful.paper.table3 import SYSTEMS as ROWS
from heedful.runs.run import flat_settings

# Table 1's published and counted costs and steps, and its published and measured paths.
_MAIN_COLUMNS = (0, 1, 4, 5, 6, 7, 9)
# The same costs as formulas and numbers, and the steps and paths.
_COST_COLUMNS, _PATH_COLUMNS = (0, 1, 2, 3, 4), (0, 5, 6, 7, 8, 9)
_RECIPES = {
    **{name: name for name in ("bytenet", "deep-att", "gnmt", "moe")},
    **{"gnmt-rl": "gnmt", "convs2s": "convs2s-en-de", "base": "paper-base", "big": "paper-big"},
}
"""For each system, the recipe with its published settings."""
# Settings that do not change what a model learns.
_APART = (
    *("recipe", "train.checkpoint", "train.validate_steps"),
    *("train.threads", "train.log"),
)
_SAME_SEED = (
    "The same seed leads to another model on another processor, which rounds sums differently: "
    "GNMT, seed 1, had 35.2 BLEU when it was trained on an AMD EPYC (commit 69e0114b)."
)
OF_TABLE2 = (*SYSTEMS, *ENSEMBLES)
"""All systems that Table 2 may have."""


def table1(record: Record) -> str:
    """Lay out the costs of layers."""
    measured = record.measurements
    return "\n\n".join(
        [
            "## Table 1: what a layer costs",
            COUNT_HEADING,
            _columns(measured["counts"], _MAIN_COLUMNS),
            describe_times(measured["rounds"], measured["threads"]),
            markdown(measured["times"]),
            "![Time of a layer by length and width](table1.svg)",
            fold(
                "How layers compare",
                conclude(measured["layers"], measured["crossings"], measured["rounds"]),
            ),
            fold(
                "All costs, steps and paths",
                [
                    _columns(measured["counts"], columns)
                    for columns in (_COST_COLUMNS, _PATH_COLUMNS)
                ],
            ),
        ]
    )


def _columns(rows: Rows, places: Sequence[int]) -> str:
    """Lay out some columns of a table."""
    return markdown([[row[place] for place in places] for row in rows])


def table2(record: Record) -> str:
    """Lay out the scaled-down systems of Table 2."""
    measured, table = record.measurements, _read_table2(record)
    trained = {system["name"] for system in measured["here"]}
    missing = [system.title for system in OF_TABLE2 if system.name not in trained]
    return "\n\n".join(
        [
            "## Table 2: the Transformer and the systems it is compared with",
            "These are scaled-down models of the systems, trained on the raw text of Multi30k "
            f"English-German (29,000 pairs), with {VOCABULARY:,} subwords (Deep-Att: words). "
            f"{_steps(measured)} Learning rates were [chosen by trials](tuning.md). In the first "
            "half of their steps, the attention of Deep-Att, GNMT and MoE is "
            "[guided](../howto/training-health.md). BLEU is cased, on test_2016_flickr, with "
            "beam 4 and the average of the last checkpoints. Perplexity is per subword, and for "
            "Deep-Att per word.",
            markdown(table.rows),
            "![Validation BLEU by number of operations](table2.svg)",
            " ".join(table.reservations),
            *table.matrix,
            fold("The published table", [markdown(table.published_rows)]),
            fold(
                "Settings that differ from those of the published systems",
                [
                    "The recipes in the headers follow the publications. Comments in their code "
                    "name the source of each setting, or “ours” if no source was found. `gnmt` "
                    "has the published dropout for English-French (0.2; 0.3 for English-German), "
                    "and only the first of two phases of training. GNMT's phase with reward has no "
                    "recipe to compare with. `train.keep_last` is the number of averaged "
                    "checkpoints; here they are a fortieth of the training apart, and in the "
                    "recipes ten minutes. Deep-Att replaces an unknown word with the source word "
                    "that it attends to; the published technique (Luong et al. 2015, “Addressing "
                    "the Rare Word Problem”) translates that word with a dictionary.",
                    *_recipe_differences(measured["plan"]),
                ],
            ),
            fold(
                "All trainings",
                [
                    *table.trainings,
                    _SAME_SEED,
                    *([f"Not trained: {'; '.join(missing)}."] if missing else []),
                    *_origin(record),
                ],
            ),
        ]
    )


def _read_table2(record: Record) -> Table2:
    """Rebuild Table 2 from its record."""
    measured = record.measurements
    differences = (
        ScoreDifference(**pair | {"interval": tuple(pair["interval"])})
        for pair in measured.get("differences", ())
    )
    systems = tuple(map(MeasuredSystem.of, measured["here"]))
    return Table2(systems, tuple(differences), measured["text"])


def _recipe_differences(plan: dict[str, Any]) -> Iterator[str]:
    """Lay out, for each system of a plan, the settings in which it differs from its recipe."""
    planned = {system.name: system.settings for system in Plan.of(plan).systems}
    for system in SYSTEMS:
        without = " (without reward)" if system.after else ""
        published = flat_settings(recipe(_RECIPES[system.name]))
        here = flat_settings(load_config(RECIPE, planned[system.name]))
        rows = [
            {"setting": name, "published": _plain(published[name]), "here": _plain(value)}
            for name, value in sorted(here.items())
            if value != published[name] and not name.startswith(_APART)
        ]
        yield table(
            f"{system.title} | recipe `{_RECIPES[system.name]}`{without} | here",
            "`{setting}` | {published} | {here}",
            rows,
        )


def _plain(value: Any) -> str:
    """Write the value of a setting as in a configuration file."""
    return "none" if value is None else json.dumps(value, ensure_ascii=False).strip('"')


def _steps(measured: Mapping[str, Any]) -> str:
    """Describe how the number of steps of each training run was chosen."""
    planned = Plan.of(measured["plan"]).systems
    minutes = sorted(system.seconds / 60 for system in planned)
    return (
        "Each training run has as many steps as its system takes in "
        f"{minutes[len(minutes) // 2]:.0f} minutes on one thread, computed from measured speeds "
        "(for GNMT + RL, from an estimated speed)."
    )


def table3(record: Record) -> str:
    """Lay out the rows of Table 3."""
    measured = record.measurements
    table = Table3(tuple(map(MeasuredSystem.of, measured["here"])), measured["text"])
    return "\n\n".join(
        [
            "## Table 3: variations of the Transformer",
            "These are scaled-down models, trained on the raw text of Multi30k English-German "
            f"(29,000 pairs), with {VOCABULARY:,} subwords. Perplexity is per subword at the last "
            "validation. BLEU is cased, on the validation text, with beam 4 and the average of "
            f"the last checkpoints. The plan divides {measured['plan']['budget'] / 3600:.0f} "
            f"hours (`--threads 1`) among {len(ROWS)} training runs.",
            markdown(table.rows),
            "![Published and measured perplexity and BLEU](table3.svg)",
            PICTURE_NOTE,
            f"{table.verdict} After so few steps, rows that learn fast are ahead.",
            fold(
                "All trainings",
                [*table.conclusions, markdown(table.details), *_origin(record)],
            ),
        ]
    )


def table3_long(record: Record) -> str:
    """Lay out the rows of Table 3 that are trained longer."""
    return lay_out_long(record, _origin(record))


def claims(record: Record) -> str:
    """Format the claims as Markdown."""
    checked = {name: Checked.of(claim) for name, claim in record.measurements["claims"].items()}
    plans = record.measurements.get("plans", {})
    minutes = ", ".join(f"{name} {plan['budget'] / 60:.1f}" for name, plan in plans.items())
    return "\n\n".join(
        [
            "## Claims",
            "A claim is a statement of the paper, or a statement that is often made about the "
            f"paper. {INTRODUCTION}",
            *claim_sections(checked, "###", "claims/{}.svg"),
            RESERVATION,
            fold(
                "Time and origin of the trainings",
                [
                    f"Minutes planned for each claim (`--threads 1`): {minutes}. All models of a "
                    "claim read the same number of positions, padding included. The command reuses "
                    "the plans in `docs/results/claims.json`.",
                    *_earlier_origins(record, "Decided"),
                ],
            ),
        ]
    )


def _origin(record: Record) -> list[str]:
    """Name the commits and machines of a table's parts."""
    counted = record.measurements.get("counted")
    again = [f"Operations were counted at commit {counted}, from the plan."] if counted else []
    return [*again, *_earlier_origins(record, "Trained")]


def _earlier_origins(record: Record, done: str) -> list[str]:
    """Name the parts that were measured at earlier commits or on other machines."""
    sentences = []
    for key, last, where in (
        ("commits", record.commit, "at the earlier commit"),
        ("machines", record.machine, "on another machine,"),
    ):
        others: dict[str, list[str]] = {}
        for title, origin in record.measurements.get(key, {}).items():
            if origin != last:
                others.setdefault(origin, []).append(title)
        sentences += [
            f"{done} {where} {origin}: {'; '.join(titles)}." for origin, titles in others.items()
        ]
    return sentences


PAGE = ResultPage(
    "tables",
    "The paper's tables, reproduced",
    {
        "table1": table1,
        "table2": table2,
        "table3": table3,
        "table3-long": table3_long,
        "claims": claims,
    },
    "This page has the results of `heedful paper` for the paper's tables and claims. Another page "
    "describes [how they are measured, and which conclusions they allow](../howto/tables.md). "
    "Table 4 has [its own page](parsing.md), and so has a [comparison of parsers](parsers.md).",
)
