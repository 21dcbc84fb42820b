"""
Multi30k English-German from raw text to BLEU: the recipe `multi30k`, an hour on two cores.

    python -m benchmarks.multi30k [RUN] [--commit C]

An interrupted run in RUN is continued; a finished one is only measured again. Writes
`docs/results/multi30k.md`.
"""

import argparse
import json
import os
from pathlib import Path

from benchmarks.report import ROOT, commit, heedful, write

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
    until = ("--set", f"train.minutes={MINUTES}", "--resume")
    if not options.measure:
        heedful("train", "multi30k", *text, *valid, "--out", options.run, *until)
    heedful("average", options.run)
    rows = []
    for name in SETS:
        for weights in ("average", "last"):
            for beam in (4, 1):
                rows.append((name, weights, beam, score(options.run, raw, name, weights, beam)))
    reached = float(rows[0][3]["lower-cased"]["bleu"]["score"])
    page = write("multi30k", "Multi30k English-German", body(options.run, rows), measured)
    print(page.read_text(encoding="utf-8"))
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


def body(run: Path, rows: list[tuple[str, str, int, dict]]) -> str:
    """Lay the figures out."""
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    last = [line for line in lines if "target_tokens" in line][-1]
    rate = last["target_tokens"] / last["seconds"]
    head = (
        f"{last['step']:,} steps in {last['seconds'] / 60:.1f} minutes, validations included: "
        f"{last['target_tokens']:,} target tokens, {rate:,.0f} a second over the whole run. "
        f"Padding {last['padding']:.1%}, peak memory {last['memory'] / (1 << 30):.2f} GiB.\n\n"
        "| set | weights | beam | lower-cased BLEU | cased BLEU | chrF | TER |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n"
    )
    table = "\n".join(
        f"| {name} | {weights} | {beam} | {s['lower-cased']['bleu']['score']:.2f} "
        f"| {s['cased']['bleu']['score']:.2f} | {s['cased']['chrf']['score']:.2f} "
        f"| {s['cased']['ter']['score']:.2f} |"
        for name, weights, beam, s in rows
    )
    first = rows[0][3]
    validations = "\n".join(
        f"| {line['step']:,} | {line['valid_perplexity']:.2f} | {line['bleu']:.1f} |"
        for line in lines
        if "bleu" in line
    )
    return (
        f"{head}{table}\n\n"
        f"Signatures: `{first['lower-cased']['bleu']['signature']}`, "
        f"`{first['cased']['bleu']['signature']}`.\n\n"
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
