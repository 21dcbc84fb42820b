"""The page of the paper's tables and claims, laid out from their records."""

from collections.abc import Mapping
from typing import Any

from benchmarks.corpora import VOCABULARY
from benchmarks.report import ResultPage
from heedful.experiments.measured import MeasuredSystem
from heedful.experiments.page import ScoreDifference, folded, markdown
from heedful.experiments.record import Record
from heedful.paper.claims.check import RESERVATION, claim_sections
from heedful.paper.claims.statement import Checked
from heedful.paper.table2 import ENSEMBLES, SYSTEMS, Table2
from heedful.paper.table3 import SYSTEMS as ROWS
from heedful.paper.table3 import Table3

OF_TABLE2 = (*SYSTEMS, *ENSEMBLES)
"""All that Table 2 may have."""


def table1(record: Record) -> str:
    """Lay the costs of layers out."""
    measured = record.measurements
    return "\n\n".join(
        [
            "## Table 1: what a layer costs",
            *(measured["count_heading"], markdown(measured["counts"])),
            *(measured["time_heading"], markdown(measured["times"])),
            "![Time of a layer against length and width](table1.svg)",
            *measured["conclusions"],
        ]
    )


def table2(record: Record) -> str:
    """Lay the siblings of Table 2's systems out."""
    measured, table = record.measurements, _read_table2(record)
    trained = {system["name"] for system in measured["here"]}
    missing = [system.title for system in OF_TABLE2 if system.name not in trained]
    return "\n\n".join(
        [
            "## Table 2: the systems that the paper is compared with",
            f"Multi30k English-German, raw (29,000 pairs), {VOCABULARY:,} subwords; BLEU, cased, "
            f"on test_2016_flickr, beam 4, the average of the last checkpoints. Learning "
            f"rates were [chosen by trials](tuning.md). {_steps(measured)}. Not trained: "
            f"{', '.join(missing) or 'none'}. Deep-Att's perplexity is of words. An ensemble "
            "translates with the mean of three seeds' probabilities, the published ones with that "
            "of eight.",
            markdown(table.rows),
            "![Validation BLEU against operations](table2.svg)",
            " ".join(table.reservations),
            *table.matrix,
            folded("The published table", [markdown(table.published_rows)]),
            *_origin(record),
        ]
    )


def french(record: Record) -> str:
    """Lay Table 2's systems on another pair of languages out."""
    measured, table = record.measurements, _read_table2(record)
    return "\n\n".join(
        [
            "## Table 2: English-French",
            "Four of the systems again, with the same settings, on another pair of languages: "
            f"Tatoeba English-French (161,126 pairs of short sentences), {VOCABULARY:,} subwords; "
            f"BLEU, cased, on its test part of 2,001. {_steps(measured)}.",
            markdown(table.rows),
            " ".join(table.reservations),
            *table.matrix,
            *_origin(record),
        ]
    )


def _read_table2(record: Record) -> Table2:
    """Read a Table 2 from its record."""
    measured = record.measurements
    differences = (
        ScoreDifference(**pair | {"interval": tuple(pair["interval"])})
        for pair in measured.get("differences", ())
    )
    systems = tuple(map(MeasuredSystem.of, measured["here"]))
    return Table2(systems, tuple(differences), measured["text"])


def _steps(measured: Mapping[str, Any]) -> str:
    """Say how the steps of trainings that take equally long were planned."""
    plan = measured["plan"]
    planned = {system["name"]: system["steps"] for system in plan["systems"]}
    earlier = [
        system["title"]
        for system in measured["here"]
        if planned.get(system["name"], system["steps"]) != system["steps"]
    ]
    of_earlier = (
        f". {', '.join(earlier)}: of an earlier, shorter plan, with rates from before those trials"
        if earlier
        else ""
    )
    return (
        f"The steps are those of a plan of {len(plan['systems'])} trainings in "
        f"{plan['budget'] / 60:.0f} minutes (`--threads 1`), which counts minutes from rates "
        f"measured one at a time{of_earlier}"
    )


def table3(record: Record) -> str:
    """Lay the rows of Table 3 out."""
    measured = record.measurements
    table = Table3(tuple(map(MeasuredSystem.of, measured["here"])), measured["text"])
    return "\n\n".join(
        [
            "## Table 3: variations of the Transformer",
            f"Multi30k English-German, raw (29,000 pairs), {VOCABULARY:,} subwords; perplexity by "
            "subword at the last validation, and BLEU, cased, of the average of the last "
            "checkpoints on the validation text, beam 4. The steps are those of a plan of all "
            f"{len(ROWS)} trainings in {measured['plan']['budget'] / 3600:.0f} hours "
            "(`--threads 1`).",
            markdown(table.rows),
            "![Published and measured perplexity and BLEU](table3.svg)",
            table.verdict,
            folded(
                "All trainings",
                [*table.conclusions, markdown(table.details), *_origin(record)],
            ),
        ]
    )


def claims(record: Record) -> str:
    """Lay the claims out."""
    checked = {name: Checked.of(claim) for name, claim in record.measurements["claims"].items()}
    plans = record.measurements.get("plans", {})
    minutes = ", ".join(f"{name} {plan['budget'] / 60:.1f}" for name, plan in plans.items())
    return "\n\n".join(
        [
            "## Claims",
            *claim_sections(checked, "###", "claims/{}.svg"),
            RESERVATION,
            "Minutes of each claim's trainings, with what belongs to them (`--threads 1`): "
            f"{minutes}. The models of a claim see equally many positions, padding included. "
            "With this file there the command makes the same trainings again.",
            *_earlier_origins(record, "Decided"),
        ]
    )


def _origin(record: Record) -> list[str]:
    return [*_counted(record), *_earlier_origins(record, "Trained")]


def _earlier_origins(record: Record, done: str) -> list[str]:
    """Name what was made at other commits than the last one, or on other machines."""
    sentences = []
    for key, last, where, what in (
        ("commits", record.commit, "at", "at an earlier commit"),
        ("machines", record.machine, "on", "on another machine"),
    ):
        others: dict[str, list[str]] = {}
        for title, origin in record.measurements.get(key, {}).items():
            if origin != last:
                others.setdefault(origin, []).append(title)
        listed = "; ".join(f"{where} {origin}: {', '.join(t)}" for origin, t in others.items())
        sentences += [f"{done} {what}, {listed}."] if others else []
    return sentences


PAGE = ResultPage(
    "tables",
    "The paper's tables, made again",
    {"table1": table1, "table2": table2, "french": french, "table3": table3, "claims": claims},
    "What `heedful paper` makes of the paper's tables and claims: [how it is done, and what may be "
    "concluded](../howto/tables.md). Table 4 has [a page of its own](parsing.md).",
)


def _counted(record: Record) -> list[str]:
    """Say where operations were counted again."""
    again = "Operations were counted again at commit {}, by the plan, without training."
    measured = record.measurements
    return [again.format(measured["counted"])] if "counted" in measured else []
