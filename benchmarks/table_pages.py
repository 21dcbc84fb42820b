"""The pages of the paper's tables and claims, laid out from their records."""

from collections.abc import Mapping
from typing import Any

from benchmarks.corpora import VOCABULARY
from benchmarks.report import ResultPage
from benchmarks.table3_long import body as lay_out_long
from heedful.experiments.measured import MeasuredSystem
from heedful.experiments.page import ScoreDifference, fold, markdown
from heedful.experiments.record import Record
from heedful.paper.claims.check import RESERVATION, claim_sections
from heedful.paper.claims.statement import Checked
from heedful.paper.table1 import COUNT_HEADING, conclude, describe_times
from heedful.paper.table2 import ENSEMBLES, SYSTEMS, Table2
from heedful.paper.table3 import SYSTEMS as ROWS
from heedful.paper.table3 import Table3

OF_TABLE2 = (*SYSTEMS, *ENSEMBLES)
"""All systems that Table 2 may have."""


def table1(record: Record) -> str:
    """Lay out the costs of layers."""
    measured = record.measurements
    return "\n\n".join(
        [
            "## Table 1: what a layer costs",
            *(COUNT_HEADING, markdown(measured["counts"])),
            describe_times(measured["rounds"], measured["threads"]),
            markdown(measured["times"]),
            "![Time of a layer by length and width](table1.svg)",
            fold(
                "How layers compare",
                conclude(measured["layers"], measured["crossings"], measured["rounds"]),
            ),
        ]
    )


def table2(record: Record) -> str:
    """Lay out the scaled-down systems of Table 2."""
    measured, table = record.measurements, _read_table2(record)
    trained = {system["name"] for system in measured["here"]}
    missing = [system.title for system in OF_TABLE2 if system.name not in trained]
    return "\n\n".join(
        [
            "## Table 2: the Transformer and the systems it is compared with",
            "These are scaled-down models of the systems, trained on Multi30k English-German, "
            f"raw (29,000 pairs), with {VOCABULARY:,} subwords (Deep-Att: words). Learning rates "
            "were [chosen by trials](tuning.md); Deep-Att has the second-best rate, because it "
            "diverges at the best rate. BLEU is cased, on test_2016_flickr, with beam 4 and the "
            f"average of the last checkpoints. {_steps(measured)}. Perplexity is per subword, and "
            "for Deep-Att per word. The last column is the BLEU on the validation text after "
            "equally many operations. An ensemble averages the probabilities of models with three "
            "seeds; the published ensembles have eight models.",
            markdown(table.rows),
            "![Validation BLEU by number of operations](table2.svg)",
            " ".join(table.reservations),
            *table.matrix,
            fold("The published table", [markdown(table.published_rows)]),
            *([fold("Not trained", [f"{'; '.join(missing)}."])] if missing else []),
            *_origin(record),
        ]
    )


def french(record: Record) -> str:
    """Lay out Table 2's systems on another pair of languages."""
    measured, table = record.measurements, _read_table2(record)
    return "\n\n".join(
        [
            "## Table 2: English-French",
            "Four of the systems are trained on Tatoeba English-French (161,126 pairs of short "
            f"sentences), with {VOCABULARY:,} subwords.{_earlier_settings(measured)} BLEU is "
            f"cased, on the 2,001 test pairs of Tatoeba. {_steps(measured)}.",
            markdown(table.rows),
            " ".join(table.reservations),
            *table.matrix,
            *_origin(record),
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


def _steps(measured: Mapping[str, Any]) -> str:
    """Describe the plan from which the number of steps of each training was computed."""
    plan = measured["plan"]
    planned = {system["name"]: system["steps"] for system in plan["systems"]}
    earlier = [
        system["title"]
        for system in measured["here"]
        if planned.get(system["name"], system["steps"]) != system["steps"]
    ]
    of_earlier = (
        f". The steps of these systems are from an earlier, shorter plan, and their learning rates "
        f"were set before the trials: {'; '.join(earlier)}"
        if earlier
        else ""
    )
    return (
        f"The plan shares {plan['budget'] / 60:.0f} minutes (`--threads 1`) among "
        f"{len(plan['systems'])} trainings. The number of steps of each training follows from the "
        f"measured speed of its system{of_earlier}"
    )


def _earlier_settings(measured: Mapping[str, Any]) -> str:
    """Name the systems that were trained with other settings than those of today."""
    today = {system.name: system for system in OF_TABLE2}
    changed = [
        system.title
        for planned in measured["plan"]["systems"]
        if (system := today.get(planned["name"])) is not None
        and not {*system.settings} <= {*planned["settings"]}
    ]
    if not changed:
        return ""
    return (
        " The settings of these systems were chosen before the trials of learning rates: "
        f"{'; '.join(changed)}."
    )


def table3(record: Record) -> str:
    """Lay out the rows of Table 3."""
    measured = record.measurements
    table = Table3(tuple(map(MeasuredSystem.of, measured["here"])), measured["text"])
    return "\n\n".join(
        [
            "## Table 3: variations of the Transformer",
            "These are scaled-down models, trained on Multi30k English-German, raw (29,000 pairs), "
            f"with {VOCABULARY:,} subwords. Perplexity is per subword at the last validation. BLEU "
            "is cased, on the validation text, with beam 4 and the average of the last "
            f"checkpoints. The plan shares {measured['plan']['budget'] / 3600:.0f} hours "
            f"(`--threads 1`) among {len(ROWS)} trainings.",
            markdown(table.rows),
            "![Published and measured perplexity and BLEU](table3.svg)",
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
            "paper. Each verdict is followed by the main numbers and the source of the claim.",
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
        "french": french,
        "table3": table3,
        "table3-long": table3_long,
        "claims": claims,
    },
    "This page has the results of `heedful paper` for the paper's tables and claims. Another page "
    "describes [how they are measured, and which conclusions they allow](../howto/tables.md). "
    "Table 4 has [its own page](parsing.md), and so has a [comparison of parsers](parsers.md).",
)
