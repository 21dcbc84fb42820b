"""
The embedded corpus learned without a part of the Transformer, or with batch norm.

    python -m benchmarks.parts [--runs FOLDER]

Trains `tiny` for 600 steps with each setting, on one thread, so that a run repeats exactly: twenty
minutes on two quiet cores. A run that is there is only measured again. Writes
`docs/results/parts.json` and the page from it.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.figures import rewrite
from benchmarks.report import ROOT, commit, heedful, keep
from heedful.data.toy_grammar.corpus import split_pairs
from heedful.evaluation.bleu import evaluate_texts

RUNS: dict[str, tuple[str, ...]] = {
    "as in the paper": (),
    "batch norm": ("model.norm_kind=batch",),
    "no norms": ("model.norm_kind=none",),
    "no residuals": ("model.residuals=false",),
    "neither": ("model.norm_kind=none", "model.residuals=false"),
    "no causal mask": ("model.causal_mask=false",),
}
COMMON = ("train.steps=600", "train.warmup=200", "train.validate_steps=100")
TEXT = ("train.precision=fp32", "train.threads=1")


def main() -> None:
    """Train, measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "parts")
    options = parser.parse_args()
    measured = commit()
    keep("parts", {"runs": measure(options.runs)}, measured)
    rewrite()


def measure(runs: Path) -> dict[str, Any]:
    """Train each and score its translations of unseen sentences."""
    runs.mkdir(parents=True, exist_ok=True)
    pairs, unseen = split_pairs(15_500, 300, seed=1)
    for name, part in (("train", pairs[:-500]), ("valid", pairs[-500:])):
        for side, language in enumerate(("en", "fr")):
            text = "".join(f"{pair[side]}\n" for pair in part)
            (runs / f"{name}.{language}").write_text(text, "utf-8")
    found = {}
    for name, settings in RUNS.items():
        run = runs / name.replace(" ", "-")
        if not (run / "average").exists():
            chosen = [part for one in (*COMMON, *TEXT, *settings) for part in ("--set", one)]
            files = [
                part
                for option, file in (
                    ("--source", "train.en"),
                    ("--target", "train.fr"),
                    ("--valid-source", "valid.en"),
                    ("--valid-target", "valid.fr"),
                )
                for part in (option, runs / file)
            ]
            more = ["--resume"] if run.exists() else []
            heedful("train", "tiny", *files, "--out", run, *more, *chosen)
            heedful("average", run)
        lines = "".join(f"{source}\n" for source, _ in unseen)
        done = heedful("translate", run, "--precision", "fp32", input=lines)
        wanted = [[target for _, target in unseen]]
        score = evaluate_texts(done.stdout.splitlines(), wanted, language="fr").bleu.score
        log = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]
        found[name] = {
            "settings": settings,
            "bleu": score,
            "perplexities": [line["valid_perplexity"] for line in log if "bleu" in line],
        }
    return found


def body(found: dict[str, Any]) -> str:
    """Lay the page out."""
    return (
        "The embedded corpus (`heedful data get grammar`), `tiny`, 600 steps, post-norm. BLEU is "
        "that of 300 unseen sentences, beam 4, average of the last checkpoints; perplexity is that "
        "of held-out text, which a decoder without its mask reads while it predicts it.\n\n"
        f"{table(found)}\n\n```sh\npython -m benchmarks.parts\n```"
    )


def table(found: dict[str, Any]) -> str:
    """Write one row for each model."""
    rows = "\n".join(
        f"| {name} | {' '.join(f'`{one}`' for one in run['settings'])} "
        f"| {run['perplexities'][0]:.2f} | {run['perplexities'][-1]:.2f} | {run['bleu']:.1f} |"
        for name, run in found["runs"].items()
    )
    head = "| model | settings | perplexity, step 100 | step 600 | BLEU |"
    return f"{head}\n| --- | --- | --- | --- | --- |\n{rows}"


if __name__ == "__main__":
    main()
