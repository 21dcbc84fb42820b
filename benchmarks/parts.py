"""
Trainings on the grammar corpus without a part of the Transformer, or with batch norm.

    python -m benchmarks.parts [--runs FOLDER]

Trains `tiny` for 600 steps with each setting, on one thread, so that a run can be repeated exactly.
The benchmark takes twenty minutes on two idle cores. Existing runs are only measured again. Writes
`docs/results/parts.json` and builds the page from it.
"""

from pathlib import Path
from typing import Any

from benchmarks.report import ResultPage, arguments, heedful
from benchmarks.training import text_files, train, validations
from heedful.data.text_parts import Pair, side_files, write_lines
from heedful.data.toy_grammar.corpus import split_pairs
from heedful.evaluation.bleu import evaluate_texts
from heedful.experiments.page import table, with_names
from heedful.experiments.record import Record

RUNS: dict[str, tuple[str, ...]] = {
    "as in the paper": (),
    "batch norm": ("model.norm_kind=batch",),
    "no norms": ("model.norm_kind=none",),
    "no residuals": ("model.residuals=false",),
    "neither": ("model.norm_kind=none", "model.residuals=false"),
    "no causal mask": ("model.causal_mask=false",),
}
COMMON = (
    *("train.steps=600", "train.warmup=200", "train.validate_steps=100"),
    *("train.precision=fp32", "train.threads=1"),
)


def main() -> None:
    """Train and measure all models, and write the page."""
    options = arguments(__doc__, "parts").parse_args()
    runs, outputs = measure(options.runs)
    PAGE.keep("parts", {"runs": runs}, options.commit, outputs=outputs)


def measure(runs: Path) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Train each model, and score its translations of unseen sentences."""
    pairs, unseen = split_pairs(15_500, 300, seed=1)
    files = write_sides(runs, {"train": pairs[:-500], "valid": pairs[-500:]})
    scores, outputs = {}, {}
    for name, settings in RUNS.items():
        run = runs / name.replace(" ", "-")
        train(run, "tiny", text_files(files[:2], files[2:]), (*COMMON, *settings))
        text = "".join(f"{source}\n" for source, _ in unseen)
        outputs[name] = heedful("translate", run, "--precision", "fp32", input=text).splitlines()
        references = [[target for _, target in unseen]]
        scores[name] = {
            "settings": settings,
            "bleu": evaluate_texts(outputs[name], references, language="fr").bleu.score,
            "perplexities": [line["valid_perplexity"] for line in validations(run)],
        }
    return scores, outputs


def write_sides(folder: Path, parts: dict[str, list[Pair]]) -> list[Path]:
    """Write the source and target files of each part, such as `train.en` and `train.fr`."""
    files = side_files(parts, ("en", "fr"))
    write_lines(folder, files, "this benchmark")
    return [folder / name for name in files]


def body(record: Record) -> str:
    """Lay out a row for each model."""
    rows = [
        run
        | {"list": " ".join(f"`{setting}`" for setting in run["settings"])}
        | {"last": run["perplexities"][-1]}
        for run in with_names(record.measurements["runs"])
    ]
    return (
        "Each model is trained on the grammar corpus (`heedful data get grammar`) for 600 steps of "
        "the recipe `tiny`, with post-norm. BLEU is measured on 300 unseen sentences, with beam 4 "
        "and the average of the last checkpoints. Perplexity is measured on held-out text; a "
        "decoder without its causal mask sees the tokens that it has to predict.\n\n"
        + table(
            "model | settings | perplexity, step 100 | step 600 | BLEU",
            "{name} | {list} | {perplexities[0]:.2f} | {last:.2f} | {bleu:.1f}",
            rows,
        )
    )


PAGE = ResultPage("parts", "A Transformer without a part", {"parts": body})


if __name__ == "__main__":
    main()
