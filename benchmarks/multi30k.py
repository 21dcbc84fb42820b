"""
Multi30k English-German from raw text to BLEU: the recipe `multi30k`, an hour on two cores.

    python -m benchmarks.multi30k [RUN] [--commit C]

An interrupted run in RUN is continued; a finished one is only measured again. Writes
`docs/results/multi30k.json`, and what is written from it.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

from benchmarks.figures import rewrite
from benchmarks.report import ROOT, commit, heedful, keep

MINUTES = 58
GOAL = 39.5
SETS = ("test_2016_flickr", "val")


def main() -> None:
    """Train, average, translate with beam and greedily, score, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", nargs="?", type=Path, default=ROOT / "runs" / "multi30k")
    parser.add_argument("--measure", action="store_true", help="RUN is trained: only measure it")
    parser.add_argument("--commit", default="", help="the commit that trained RUN")
    options = parser.parse_args()
    raw = Path(os.environ.get("HEEDFUL_DATA", "../shared/data")) / "multi30k" / "raw"
    measured = options.commit or commit()
    text = ("--source", raw / "train.en.gz", "--target", raw / "train.de.gz")
    valid = ("--valid-source", raw / "val.en.gz", "--valid-target", raw / "val.de.gz")
    again = ("--resume",) if options.run.exists() else ()
    until = ("--set", f"train.minutes={MINUTES}", *again)
    if not options.measure:
        heedful("train", "multi30k", *text, *valid, "--out", options.run, *until)
    heedful("average", options.run)
    rows = []
    for name in SETS:
        for weights in ("average", "last"):
            for beam in (4, 1):
                rows.append((name, weights, beam, score(options.run, raw, name, weights, beam)))
    reached = float(rows[0][3]["lower-cased"]["bleu"]["score"])
    found = collected(options.run, rows)
    keep("multi30k", found, measured)
    rewrite()
    print(body(found))
    if reached < GOAL:
        raise SystemExit(f"the goal is {GOAL} lower-cased BLEU, but {reached:.2f} was reached")


def score(run: Path, raw: Path, name: str, weights: str, beam: int) -> dict[str, dict[str, str]]:
    """Translate one set and score it with and without case."""
    output = run / f"{name}.{weights}.beam{beam}.de"
    chosen = ("--weights", weights, "--beam", beam)
    heedful("translate", run, "--input", raw / f"{name}.en.gz", "--output", output, *chosen)
    files = ("--hypothesis", output, "--reference", raw / f"{name}.de.gz", "--json")
    return {
        "cased": json.loads(heedful("evaluate", *files).stdout),
        "lower-cased": json.loads(heedful("evaluate", *files, "--lowercase").stdout),
    }


def collected(run: Path, rows: list[tuple[str, str, int, dict[str, Any]]]) -> dict[str, Any]:
    """Collect the results from the log and the scores."""
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    last = [line for line in lines if "target_tokens" in line][-1]
    return {
        "steps": last["step"],
        "minutes": last["seconds"] / 60,
        "target_tokens": last["target_tokens"],
        "tokens_per_second": last["target_tokens"] / last["seconds"],
        "padding": last["padding"],
        "memory_gib": last["memory"] / (1 << 30),
        "scores": [
            {"set": name, "weights": weights, "beam": beam}
            | {"lower-cased": s["lower-cased"]["bleu"]["score"]}
            | {kind: s["cased"][kind]["score"] for kind in ("bleu", "chrf", "ter")}
            for name, weights, beam, s in rows
        ],
        "signatures": [rows[0][3][case]["bleu"]["signature"] for case in ("lower-cased", "cased")],
        "validations": [
            {name: line[name] for name in ("step", "valid_perplexity", "bleu")}
            for line in lines
            if "bleu" in line
        ],
    }


def body(found: dict[str, Any]) -> str:
    """Lay the figures out."""
    table = "\n".join(
        f"| {one['set']} | {one['weights']} | {one['beam']} | {one['lower-cased']:.2f} "
        f"| {one['bleu']:.2f} | {one['chrf']:.2f} | {one['ter']:.2f} |"
        for one in found["scores"]
    )
    validations = "\n".join(
        f"| {line['step']:,} | {line['valid_perplexity']:.2f} | {line['bleu']:.1f} |"
        for line in found["validations"]
    )
    return (
        f"{found['steps']:,} steps in {found['minutes']:.1f} minutes, validations included: "
        f"{found['target_tokens']:,} target tokens, {found['tokens_per_second']:,.0f} a second "
        f"over the whole run. Padding {found['padding']:.1%}, peak memory "
        f"{found['memory_gib']:.2f} GiB.\n\n"
        "| set | weights | beam | lower-cased BLEU | cased BLEU | chrF | TER |\n"
        f"| --- | --- | --- | --- | --- | --- | --- |\n{table}\n\n"
        f"The goal was {GOAL} lower-cased with the average. {found.get('note', '')}".strip()
        + f"\n\nSignatures: {', '.join(f'`{one}`' for one in found['signatures'])}.\n\n"
        "Validation while training (greedy, cased, a single checkpoint):\n\n"
        f"| step | perplexity | BLEU |\n| --- | --- | --- |\n{validations}\n\n"
        "```sh\n"
        "heedful train multi30k --source train.en.gz --target train.de.gz \\\n"
        "    --valid-source val.en.gz --valid-target val.de.gz --out RUN "
        f"--set train.minutes={MINUTES}\n"
        "heedful average RUN\n"
        "heedful translate RUN --input test_2016_flickr.en.gz --output out.de\n"
        "heedful evaluate --hypothesis out.de --reference test_2016_flickr.de.gz --lowercase\n"
        "```\n\n"
        "All of it is `make bench`."
    )


if __name__ == "__main__":
    main()
