"""
Time and memory of preparing a million Europarl pairs, from compressed text to ids.

    python -m benchmarks.prepare [FOLDER]

FOLDER receives the prepared data (default: a temporary folder). Writes `docs/results/prepare.json`
and builds the page from it.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.process import run_watched
from benchmarks.report import ResultPage, arguments, data_folder
from benchmarks.training import chosen
from heedful.data.cleaning.filter import RULES
from heedful.experiments.page import code_block, table
from heedful.experiments.record import Record

PAIRS = 1_000_000
FILES = "train.0[0-9]"
PLAIN = ("data.vocabulary_size=32000", "data.max_length=256")
CLEAN = (
    *PLAIN,
    "data.max_length_ratio=3",
    "data.min_script_share=0.5",
    "data.drop_duplicates=true",
)
IDS = ("source.ids", "source.offsets", "target.ids", "target.offsets", "meta.json")


def main() -> None:
    """Prepare with and without learning subwords, with one and two processes, and with cleaning."""
    parser = arguments(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="folder for the prepared data")
    options = parser.parse_args()
    raw = data_folder() / "europarl-fr-en"
    exclude = ("--exclude", raw / "dev.fr.xz", "--exclude", raw / "dev.en.xz")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        plain, clean = folder / "plain", folder / "clean"
        rows = [prepare("subwords and ids", plain, PLAIN, 2)]
        ids = [[(plain / "data" / name).read_bytes() for name in IDS]]
        for processes in (1, 2):
            shutil.rmtree(plain / "data")
            rows.append(prepare("ids", plain, PLAIN, processes))
            ids.append([(plain / "data" / name).read_bytes() for name in IDS])
        prepare("subwords and ids, cleaned", clean, CLEAN, 2, exclude)
        shutil.rmtree(clean / "data")
        rows.append(prepare("ids, cleaned", clean, CLEAN, 2, exclude))
        report = json.loads((clean / "data" / "report.json").read_text("utf-8"))
    if any(again != ids[0] for again in ids):
        raise SystemExit("any number of processes must give the same bytes")
    names = ("rule", "dropped")
    measurements = {
        "rows": rows,
        "text_bytes": sum(path.stat().st_size for path in raw.glob(f"{FILES}.??.xz")),
        "kept": report["kept"],
        "rules": [{name: rule[name] for name in names} for rule in report["rules"]],
    }
    PAGE.keep("prepare", measurements, options.commit)


def prepare(
    what: str, out: Path, settings: Sequence[str], processes: int, more: Sequence[object] = ()
) -> dict[str, Any]:
    """Run `heedful data prepare`, and measure its time and memory."""
    raw = data_folder() / "europarl-fr-en"
    text = ("--source", raw / f"{FILES}.fr.xz", "--target", raw / f"{FILES}.en.xz")
    words = ("data", "prepare", "paper-base", *text, "--out", out, *chosen(settings), *more)
    done = run_watched([sys.executable, "-m", "heedful", *words, "--processes", processes])
    row = {
        "what": what,
        "processes": processes,
        "seconds": done.seconds,
        "processor_seconds": done.processor_seconds,
        "peak": done.peak,
    }
    print(row, flush=True)
    return row


def body(record: Record) -> str:
    """Format the measurements as Markdown."""
    measured = record.measurements
    rows = [
        row | {"rate": 60 * PAIRS / row["seconds"], "megabytes": row["peak"] / 1e6}
        for row in measured["rows"]
    ]
    times = table(
        "what | processes | seconds | pairs a minute | processor seconds | peak memory, MB",
        "{what} | {processes} | {seconds:.1f} | {rate:,.0f} | {processor_seconds:.1f} "
        "| {megabytes:,.0f}",
        rows,
    )
    dropped = table(
        "rule | pairs dropped | drops a pair if",
        "{rule} | {dropped:,} | {drops}",
        ({**rule, "drops": RULES[rule["rule"]]} for rule in measured["rules"]),
    )
    return (
        f"`heedful data prepare` encodes {PAIRS:,} pairs of Europarl French-English "
        f"({measured['text_bytes'] / 1e6:.0f} MB of .xz files) with 32,000 shared byte-pair "
        "subwords. Peak memory is the largest total memory of all processes at one time; shared "
        f"pages are counted for each process.\n\n{times}\n\nIn the first row, the subwords are "
        "learned from up to a million lines, held in memory. Runs with the same settings wrote "
        f"identical bytes.\n\nCleaning kept {measured['kept']:,} pairs:\n\n{dropped}\n\n"
        + code_block(
            (
                'heedful data prepare paper-base --source "train.0[0-9].fr.xz" \\',
                f'    --target "train.0[0-9].en.xz" --out DIR {" ".join(chosen(PLAIN))}',
            )
        )
        + "\n\nThe whole benchmark:"
    )


PAGE = ResultPage("prepare", "Preparing a million pairs", {"prepare": body})


if __name__ == "__main__":
    main()
