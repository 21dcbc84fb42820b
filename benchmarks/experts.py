"""
Mixtures of experts on Multi30k, and their speed beside dense models.

    python -m benchmarks.experts quality [--runs FOLDER]
    python -m benchmarks.experts speed

`quality` trains `moe-small` (an hour on two cores); a run that is there is continued, a finished
one only measured again. `speed` times it beside a Transformer whose feed-forward networks take the
operations of its two experts, and one with the weights of all eight. Writes
`docs/results/experts-*.json` and the page from them.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

from benchmarks.families import Systems, speed, speed_table
from benchmarks.figures import rewrite
from benchmarks.report import RESULTS, ROOT, commit, heedful, keep, read
from benchmarks.small import SET, train_and_score

DENSE = ("model.experts.count=none",)
SYSTEMS: Systems = {
    "dense, as many operations": ("moe-small", (*DENSE, "model.d_ff=384")),
    "8 noisy experts, 2 a token": ("moe-small", ()),
    "8 balanced experts, 2 a token": ("moe-small", ("model.experts.gating=balanced",)),
    "dense, as many weights": ("moe-small", (*DENSE, "model.d_ff=1536")),
}
GOAL = 36.0


def main() -> None:
    """Measure one part and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("speed", "quality"))
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "experts")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each system")
    parser.add_argument("--commit", default="", help="the commit that trained RUNS")
    options = parser.parse_args()
    data = Path(os.environ.get("HEEDFUL_DATA", "../shared/data"))
    measured = options.commit or commit()
    if options.part == "speed":
        found = speed(data, options.rounds, SYSTEMS)
    else:
        run = options.runs / "moe-small"
        found = train_and_score(data / "multi30k" / "raw", run, "moe-small")
        found["load"] = json.loads(heedful("info", run, "--json").stdout)["experts"]
    keep(f"experts-{options.part}", found, measured)
    rewrite()
    if options.part == "quality" and found["bleu"] < GOAL:
        raise SystemExit(f"the goal is {GOAL} lower-cased BLEU")


def body() -> str:
    """Lay both parts out."""
    parts = []
    for name, layout in (("quality", _quality_page), ("speed", _speed_page)):
        if not (RESULTS / f"experts-{name}.json").exists():
            continue
        record = read(f"experts-{name}")
        parts.append(
            f"{layout(record['found'])}\n\n```sh\npython -m benchmarks.experts {name}\n```\n\n"
            f"Machine: {record['machine']}. Commit {record['commit']}, {record['date']}."
        )
    return "\n\n".join(parts)


def _quality_page(found: dict[str, Any]) -> str:
    """Lay scores and loads out."""
    validations = "\n".join(
        f"| {one['step']:,} | {one['valid_perplexity']:.2f} | {one['bleu']:.1f} |"
        for one in found["validations"]
    )
    loads = "\n".join(f"| `{name}` | {shares} |" for name, shares in found["load"].items())
    return (
        "## Multi30k English-German\n\n"
        "`moe-small`, a Transformer with a mixture of 8 noisy experts in every layer, 2 a token. "
        f"Lower-cased BLEU on {SET}, beam 4, average of the last checkpoints: "
        f"**{found['bleu']:.1f}** with {found['parameters']:,} weights after {found['steps']:,} "
        f"steps and {found['target_tokens']:,} target tokens. The goal was {GOAL:.0f}.\n\n"
        "Validation while training (greedy, cased, a single checkpoint):\n\n"
        f"| step | perplexity | BLEU |\n| --- | --- | --- |\n{validations}\n\n"
        "Load of the experts at the end, as `heedful info` shows it (equal shares are 25 %):\n\n"
        f"| mixture | experts |\n| --- | --- |\n{loads}\n\n{found.get('note', '')}".strip()
    )


def _speed_page(found: dict[str, Any]) -> str:
    """Lay the speeds out beside the dense model of as many operations."""
    return (
        "## Speed beside dense models\n\n"
        f"{speed_table(found['systems'])}\n\n{found.get('note', '')}".strip()
    )


if __name__ == "__main__":
    main()
