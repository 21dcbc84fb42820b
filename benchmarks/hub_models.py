"""
Translation speed of Hugging Face's models in heedful, transformers and CTranslate2.

    python -m benchmarks.hub_models [--model NAME ...] [--rounds N]

Creates models with the shapes of the most downloaded models. Their weights are random, because the
work does not depend on the values. Each toolkit translates lines of Multi30k on one thread, 32
lines together and one line at a time. Processes take turns. The minimum length equals the maximum
length, so all toolkits write the same number of subwords, with beam 4. Each toolkit is measured in
all its precisions and compared in its fastest precision. Writes `docs/results/hub-models.json` and
builds the page from it.

    python -m benchmarks.hub_models work TOOLKIT PRECISION FOLDER
    python -m benchmarks.hub_models compare FOLDER LINES

The benchmark runs these two commands in its processes. `work` measures processor seconds, on which
other programs have little effect. `compare` counts lines for which CTranslate2 writes the same
subwords as transformers, before anything is timed.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

from benchmarks.corpora import multi30k
from benchmarks.hub_ctranslate2 import convert
from benchmarks.hub_folders import MAKERS
from benchmarks.report import ResultPage, arguments, measurements_of
from heedful.experiments.page import table
from heedful.experiments.record import Record

LENGTH, BEAM, COMPARED = 24, 4, 4
CONVERTED = "ctranslate2"
SHAPES = {"32 lines together": (32, 32), "a line at a time": (1, 4)}
"""Number of lines in a batch, and number of lines in a measurement."""
_THIS, _ANSWER = (sys.executable, "-m", "benchmarks.hub_models"), "seconds: "
PRECISIONS = {
    "heedful": ("fp32", "bf16", "int8"),
    "transformers": ("fp32", "bf16"),
    "CTranslate2": ("float32", "bfloat16", "int8_float32", "int8_bfloat16"),
}


def main() -> None:
    """Make each model, measure it, and write the page."""
    if sys.argv[1:2] == ["work"]:
        return work(*sys.argv[2:])
    if sys.argv[1:2] == ["compare"]:
        return print(compare(*sys.argv[2:]))
    parser = arguments(__doc__, "hub-models")
    parser.add_argument("--model", action="append", default=[], choices=[*MAKERS])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TOOLKIT:PRECISION",
        help="measure only this toolkit in this precision; may be repeated",
    )
    options = parser.parse_args()
    for name in options.model or MAKERS:
        folder = options.runs / name
        if not (folder / "done").exists():
            make(name, folder, options.runs)
        compared = [*_THIS, "compare", str(folder), str(COMPARED)]
        equal = int(subprocess.check_output(compared, text=True).splitlines()[-1])
        rows = measure(folder, options.rounds, options.only)
        known = measurements_of("hub-models").get("models", {})
        size = json.loads((folder / "done").read_text(encoding="utf-8"))
        measurement = {"parameters": size, "rows": rows, "commit": options.commit, "equal": equal}
        PAGE.keep("hub-models", {"models": known | {name: measurement}}, options.commit)


def make(name: str, folder: Path, runs: Path) -> None:
    """Write a model as a Hugging Face folder, as a run, and in CTranslate2's format."""
    theirs, programs = folder / "theirs", Path(sys.executable).parent
    theirs.mkdir(parents=True)
    parameters = MAKERS[name](theirs, _lines(runs, "train", None))
    # With random weights, rounding errors may decide a search, so translations may differ.
    words = ("import", theirs, "--from", "huggingface", "--accept-differences", "--out")
    subprocess.run([programs / "heedful", *words, folder / "run"], check=True)
    convert(theirs, folder / CONVERTED)
    (folder / "done").write_text(json.dumps(parameters), encoding="utf-8")


def compare(folder: str, count: str) -> int:
    """Count the lines for which CTranslate2 writes the same subwords as transformers, in fp32."""
    lines = _lines(Path(folder).parent, "valid", int(count))
    ids = [
        _TOOLKITS[toolkit](Path(folder), precision)(lines)
        for toolkit, precision in (("transformers", "fp32"), ("CTranslate2", "float32"))
    ]
    return sum(ours == theirs for ours, theirs in zip(*ids, strict=True))


def measure(folder: Path, rounds: int, only: Sequence[str]) -> list[dict[str, Any]]:
    """Measure all toolkits in turns, each in a process that has already loaded the model."""
    seconds: dict[tuple[str, str, str], list[float]] = {}
    with ExitStack() as stack:
        workers = {
            (toolkit, precision): stack.enter_context(_worker(toolkit, precision, folder))
            for toolkit, known in PRECISIONS.items()
            for precision in filter(_is_supported, known)
            if not only or f"{toolkit}:{precision}" in only
        }
        for number in range(rounds + 1):
            for shape, (batch, count) in SHAPES.items():
                for (toolkit, precision), worker in workers.items():
                    taken = _ask(worker, f"{batch} {count}")
                    print(folder.name, shape, toolkit, precision, f"{taken:.2f} s", flush=True)
                    if number:  # the first round warms up
                        seconds.setdefault((shape, toolkit, precision), []).append(taken)
    return [
        {"shape": shape, "toolkit": toolkit, "precision": precision, "seconds": taken}
        for (shape, toolkit, precision), taken in seconds.items()
    ]


def _worker(toolkit: str, precision: str, folder: Path) -> subprocess.Popen[str]:
    """Start a process that loads a model and measures it on request."""
    command = [*_THIS, "work", toolkit, precision, str(folder)]
    return subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True)


def _ask(worker: subprocess.Popen[str], question: str) -> float:
    """Let a process measure once, and return the seconds."""
    assert worker.stdin is not None and worker.stdout is not None
    print(question, file=worker.stdin, flush=True)
    for line in worker.stdout:
        if line.startswith(_ANSWER):
            return float(line.removeprefix(_ANSWER))
    raise RuntimeError(f"{worker.args!r} ended with code {worker.wait()}")


def _is_supported(precision: str) -> bool:
    """Tell whether this CPU supports a precision of CTranslate2; True for other precisions."""
    import ctranslate2

    known = PRECISIONS["CTranslate2"]
    return precision not in known or precision in ctranslate2.get_supported_compute_types("cpu")


def work(toolkit: str, precision: str, folder: str) -> None:
    """Load a model; then, for each request, translate and print the CPU seconds."""
    translate = _TOOLKITS[toolkit](Path(folder), precision)
    for question in sys.stdin:
        batch, count = map(int, question.split())
        lines = _lines(Path(folder).parent, "valid", count)
        start = time.process_time()
        for first in range(0, count, batch):
            translate(lines[first : first + batch])
        print(f"{_ANSWER}{time.process_time() - start}", flush=True)


def _lines(runs: Path, part: str, count: int | None) -> list[str]:
    """Read English lines of Multi30k."""
    file = multi30k(runs).file(part, "en")
    return file.read_text(encoding="utf-8").splitlines()[:count]


Translate = Callable[[list[str]], Sequence[object]]
"""A function that translates lines and returns texts, or subword ids that it also decodes."""


def _heedful(folder: Path, precision: str) -> Translate:
    """Load the run with heedful."""
    import heedful

    model = heedful.Translator.load(
        folder / "run", precision=precision, threads=1, device="cpu", reading="exact"
    )
    return lambda lines: model.translate(
        lines, beam=BEAM, min_length=LENGTH, max_length=LENGTH, long_lines="cut"
    )


def _transformers(folder: Path, precision: str) -> Translate:
    """Load the folder with transformers, and translate with `generate`."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    torch.set_num_threads(1)
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[precision]
    tokenizer = AutoTokenizer.from_pretrained(folder / "theirs")
    model = AutoModelForSeq2SeqLM.from_pretrained(folder / "theirs", dtype=dtype).eval()

    @torch.inference_mode()
    def translate(lines: list[str]) -> list[list[int]]:
        rows = tokenizer(lines, padding=True, return_tensors="pt")
        rows.pop("token_type_ids", None)
        lengths = {"min_new_tokens": LENGTH, "max_new_tokens": LENGTH}
        ids = model.generate(**rows, num_beams=BEAM, **lengths)
        tokenizer.batch_decode(ids, skip_special_tokens=True)
        return [row[1 : LENGTH + 1] for row in ids.tolist()]  # without the start symbol

    return translate


def _ctranslate2(folder: Path, precision: str) -> Translate:
    """Load the converted model with CTranslate2, and the tokenizer with transformers."""
    import ctranslate2
    from transformers import AutoTokenizer, GenerationConfig

    tokenizer = AutoTokenizer.from_pretrained(folder / "theirs")
    names = json.loads((folder / CONVERTED / "shared_vocabulary.json").read_text(encoding="utf-8"))
    numbers = {name: number for number, name in enumerate(names)}
    first = GenerationConfig.from_pretrained(folder / "theirs").forced_bos_token_id
    prefix = None if first is None else [tokenizer.convert_ids_to_tokens(first)]
    model = ctranslate2.Translator(
        str(folder / CONVERTED), device="cpu", compute_type=precision, intra_threads=1
    )

    def translate(lines: list[str]) -> list[list[int]]:
        tokens = [tokenizer.convert_ids_to_tokens(tokenizer.encode(line)) for line in lines]
        lengths = {"min_decoding_length": LENGTH, "max_decoding_length": LENGTH}
        prefixes = None if prefix is None else [prefix] * len(lines)
        results = model.translate_batch(tokens, target_prefix=prefixes, beam_size=BEAM, **lengths)
        ids = [[numbers[name] for name in result.hypotheses[0]] for result in results]
        tokenizer.batch_decode(ids, skip_special_tokens=True)
        return ids

    return translate


_TOOLKITS: dict[str, Callable[[Path, str], Translate]] = {
    "heedful": _heedful,
    "transformers": _transformers,
    "CTranslate2": _ctranslate2,
}


_COMPARED_IN_FP32 = ("CTranslate2", "heedful")


def fastest(
    rows: Sequence[dict[str, Any]], shape: str, toolkit: str, fp32: bool = False
) -> dict[str, Any] | None:
    """
    Choose the row of a toolkit with the smallest median time, or its row in fp32.

    Returns None if there is no such row.
    """
    chosen = [row for row in rows if row["shape"] == shape and row["toolkit"] == toolkit]
    if fp32:
        chosen = [row for row in chosen if row["precision"] in ("fp32", "float32")]
    return min(chosen, key=_median, default=None)


def body(record: Record) -> str:
    """Lay out a table: a row for each model and number of lines."""
    cells = []
    for name, model in record.measurements["models"].items():
        for shape, (_, lines) in SHAPES.items():
            best = {toolkit: fastest(model["rows"], shape, toolkit) for toolkit in PRECISIONS}
            row = {"model": name, "size": model["parameters"] / 1e6, "shape": shape}
            for toolkit, measurement in best.items():
                row[toolkit] = _rate(measurement, lines)
                row[f"over {toolkit}"] = _ratio(measurement, best["heedful"])
            plain = [
                fastest(model["rows"], shape, toolkit, fp32=True) for toolkit in _COMPARED_IN_FP32
            ]
            row["in fp32"] = _ratio(*plain)
            row["equal"] = f"{model['equal']} of {COMPARED}"
            cells.append(row)
    return _HEAD + table(
        "model | million weights | lines | heedful | transformers | CTranslate2 | heedful over "
        "transformers | over CTranslate2 | both in fp32 | lines equal",
        "{model} | {size:.0f} | {shape} | {heedful} | {transformers} | {CTranslate2} | "
        "{over transformers} | {over CTranslate2} | {in fp32} | {equal}",
        cells,
    )


def _median(row: dict[str, Any]) -> float:
    return statistics.median(row["seconds"])


def _rate(row: dict[str, Any] | None, lines: int) -> str:
    return "–" if row is None else f"{lines / _median(row):.1f} ({row['precision']})"


def _ratio(theirs: dict[str, Any] | None, ours: dict[str, Any] | None) -> str:
    return "–" if theirs is None or ours is None else f"{_median(theirs) / _median(ours):.2f}"


_HEAD = (
    "The table shows how many lines each toolkit translates per second of processor time, "
    "from text to text on one thread. Each speed is a median, in the toolkit's fastest precision "
    "(named in parentheses). All toolkits use "
    f"the same random weights, the same lines, beam {BEAM} and {LENGTH} subwords a line. “Both in "
    "fp32” is the speed of heedful divided by that of CTranslate2, both in fp32. “Lines equal” "
    "counts lines for which CTranslate2 and transformers write the same subwords in fp32. The "
    "benchmark extends the converter of CTranslate2 4.8, which cannot read the BART and M2M100 "
    "files of transformers 5.\n\n"
)
PAGE = ResultPage("hub-models", "Speed of Hugging Face's models", {"hub-models": body})


if __name__ == "__main__":
    main()
