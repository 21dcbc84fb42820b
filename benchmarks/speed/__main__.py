"""
The speed benchmark: measures section by section, writes `docs/results/speed.md`.

    python -m benchmarks.speed [SECTION ...] [--run RUN] [--page] [--out docs/results/speed-bf16]

Without sections all that this machine allows. What a section found lies in
`docs/results/speed/SECTION.json`; the page, and the figures of others, are written from all of
them, whenever they were made. What a processor with fast products in bf16 found goes to
`docs/results/speed-bf16`.
"""

import argparse
import json
import os
import tempfile
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import torch

from benchmarks.figures import rewrite
from benchmarks.report import RESULTS, ROOT, commit, machine
from benchmarks.speed.context import Context
from benchmarks.speed.page import write_page
from benchmarks.speed.sections import ON_A_GPU, SECTIONS

FOUND = RESULTS / "speed"


def main() -> None:
    """Measure the requested sections, then write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument(
        "--run",
        type=Path,
        default=ROOT / "runs" / "speed",
        help="a run of paper-base on Multi30k with 8,000 subwords; trained there if it is not",
    )
    parser.add_argument("--work", type=Path, help="where runs of the sections go")
    parser.add_argument("--out", type=Path, default=FOUND, help="where the figures go")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contender")
    parser.add_argument("--threads", type=int, default=0, help="0 for all")
    parser.add_argument("--quick", action="store_true", help="try everything on toy shapes")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(f"sections are {', '.join(SECTIONS)}, but {', '.join(unknown)} came")
    there = [name for name in SECTIONS if torch.cuda.is_available() == (name in ON_A_GPU)]
    asked = [] if options.page else options.sections or there
    place = tempfile.TemporaryDirectory() if options.work is None else nullcontext(options.work)
    data = Path(os.environ.get("HEEDFUL_DATA", "../shared/data")).resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    with place as work:
        Path(work).mkdir(parents=True, exist_ok=True)
        for name in asked:
            context = Context(
                data, options.run, Path(work), options.quick, options.rounds, options.threads
            )
            print(f"{name} ...", flush=True)
            found = {
                "section": name,
                "commit": commit(),
                "date": datetime.now(UTC).date().isoformat(),
                "machine": machine(),
                "found": SECTIONS[name](context),
                "commands": context.commands,
            }
            path = options.out / f"{name}.json"
            # as anybody could type it, wherever the corpora lie here
            text = json.dumps(found, indent=1).replace(str(data), "$HEEDFUL_DATA")
            text = text.replace(f"{ROOT}/", "")
            path.write_text(f"{text}\n", encoding="utf-8")
    print(write_page(options.out))
    if options.out.resolve().parent == RESULTS.resolve():
        rewrite()


if __name__ == "__main__":
    main()
