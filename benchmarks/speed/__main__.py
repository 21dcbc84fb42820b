"""
The speed benchmark, which measures section by section and writes `docs/results/speed.md`.

    python -m benchmarks.speed [SECTION ...] [--run RUN] [--page] [--out docs/results/speed-bf16]

Without SECTION, measures all sections that this machine allows. Each section is recorded in
`docs/results/speed/SECTION.json`, and the page is written from all records. `--out` names another
folder, such as the folder for a processor with fast bf16 products.
"""

import json
import tempfile
from contextlib import nullcontext
from pathlib import Path

import torch

from benchmarks.report import RESULTS, ROOT, arguments, data_folder, machine
from benchmarks.speed.context import Context
from benchmarks.speed.page import write_page
from benchmarks.speed.sections import ON_A_GPU, SECTIONS
from heedful.experiments.record import Record


def main() -> None:
    """Measure the requested sections, then write the page."""
    parser = arguments(__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument(
        "--run",
        type=Path,
        default=ROOT / "runs" / "speed",
        help="a run of paper-base on Multi30k with 8,000 subwords; trained if missing",
    )
    parser.add_argument("--work", type=Path, help="folder for the runs of the sections")
    parser.add_argument(
        "--out", type=Path, default=RESULTS / "speed", help="folder for the records"
    )
    parser.add_argument("--rounds", type=int, default=3, help="turns of each system")
    parser.add_argument("--threads", type=int, default=0, help="number of threads; 0 for all cores")
    parser.add_argument("--quick", action="store_true", help="try everything on toy shapes")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    if unknown := {*options.sections} - {*SECTIONS}:
        parser.error(f"SECTION must be one of {', '.join(SECTIONS)}, but is {unknown.pop()}")
    possible = [name for name in SECTIONS if torch.cuda.is_available() == (name in ON_A_GPU)]
    place = tempfile.TemporaryDirectory() if options.work is None else nullcontext(options.work)
    data, sizes = data_folder(), (options.quick, options.rounds, options.threads)
    with place as work:
        Path(work).mkdir(parents=True, exist_ok=True)
        for name in () if options.page else options.sections or possible:
            context = Context(data, options.run, Path(work), *sizes)
            print(f"{name} ...", flush=True)
            section = json.dumps(SECTIONS[name](context))
            # commands as anybody could type them, without the paths of this machine
            section = section.replace(str(data), "$HEEDFUL_DATA").replace(f"{ROOT}/", "")
            record = Record(options.commit, machine(), json.loads(section), context.commands)
            record.write(options.out / f"{name}.json")
    print(write_page(options.out))


if __name__ == "__main__":
    main()
