"""
Families and kinds of attention beside the Transformer.

    python -m benchmarks.families speed
    python -m benchmarks.families quality [--runs FOLDER]

`speed` times a training step and a search of models of equal size, in turns (half an hour).
`quality` trains `convolutional-small` on Multi30k: half an hour on two quiet cores; a run that is
there is continued, a finished one only measured again. Writes `docs/results/families-*.json`, and
what is written from them.
"""

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.figures import rewrite
from benchmarks.report import RESULTS, ROOT, commit, keep, read
from benchmarks.small import SET, train_and_score
from benchmarks.speed.context import Context
from heedful.config.load import load_config
from heedful.families.build import build_model
from heedful.model.build import parameter_count

VOCABULARY = 4000
TRANSFORMER = ("model.d_model=256", "model.d_ff=384", "model.heads=4", "model.encoder_layers=3")
TRANSFORMER += ("model.decoder_layers=3",)
Systems = dict[str, tuple[str, tuple[str, ...]]]
"""By name: a recipe, and settings."""
SYSTEMS: Systems = {
    "Transformer": ("multi30k", TRANSFORMER),
    "ConvS2S": ("convolutional-small", ()),
    "ByteNet": (
        "multi30k",
        (
            *("model.encoder=bytenet", "model.decoder=bytenet", "model.d_model=256"),
            *("model.encoder_layers=15", "model.decoder_layers=14"),
        ),
    ),
    "recurrent, with attention": (
        "recurrent-small",
        ("model.recurrent.hidden_size=336", "model.recurrent.readout_size=256"),
    ),
    "Transformer, batch norm": ("multi30k", (*TRANSFORMER, "model.norm_kind=batch")),
    "Transformer, additive scores": ("multi30k", (*TRANSFORMER, "model.attention.score=additive")),
    "Transformer, windows of 8": ("multi30k", (*TRANSFORMER, "model.attention.window=8")),
    "Transformer, Fastformer in both halves": (
        "multi30k",
        (
            *TRANSFORMER,
            "model.attention.encoder=fastformer",
            "model.attention.decoder=fastformer-linear",
        ),
    ),
}
GOAL = 33.0


def main() -> None:
    """Measure one part and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("speed", "quality"))
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "families")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each system")
    parser.add_argument("--commit", default="", help="the commit that trained RUNS")
    options = parser.parse_args()
    data = Path(os.environ.get("HEEDFUL_DATA", "../shared/data"))
    measured = options.commit or commit()
    if options.part == "speed":
        found = speed(data, options.rounds, SYSTEMS)
    else:
        raw, run = data / "multi30k" / "raw", options.runs / "convolutional"
        found = train_and_score(raw, run, "convolutional-small")
    keep(f"families-{options.part}", found, measured)
    rewrite()
    if options.part == "quality" and found["bleu"] < GOAL:
        raise SystemExit(f"the goal is {GOAL} lower-cased BLEU")


def speed(data: Path, rounds: int, systems: Systems) -> dict[str, Any]:
    """Time steps and searches; the turns of all systems follow each other."""
    found: dict[str, Any] = {name: {"train": [], "translate": []} for name in systems}
    with tempfile.TemporaryDirectory() as temporary:
        context = Context(data, Path(temporary), Path(temporary))
        for _ in range(rounds):
            for name, (base, settings) in systems.items():
                chosen = [part for one in settings for part in ("--set", one)]
                common = (*chosen, "--vocabulary", VOCABULARY, "--precision", "fp32")
                common += ("--only", "heedful")
                step = context.bench("train", base, *common, "--batch-tokens", 1024, "--steps", 5)
                shape = ("--lines", 128, "--tokens", 20, "--batch", 32, "--source-length", 16)
                search = context.bench("translate", "--recipe", base, *common, *shape)
                found[name]["train"].append(step["measurements"][0])
                found[name]["translate"].append(search["measurements"][0])
    for name, (base, settings) in systems.items():
        found[name]["parameters"] = _parameters(base, settings)
        found[name]["command"] = " ".join((base, *settings))
    return {"systems": found}


def _parameters(base: str, settings: tuple[str, ...]) -> int:
    """Count the weights."""
    config = load_config(base, [f"data.vocabulary_size={VOCABULARY}", *settings])
    return parameter_count(build_model(config.model, VOCABULARY, VOCABULARY, max_length=257))


# ---------------------------------------------------------------- the page


def body() -> str:
    """Lay both parts out."""
    parts = []
    for name, layout in (("quality", _quality_page), ("speed", _speed_page)):
        if not (RESULTS / f"families-{name}.json").exists():
            continue
        record = read(f"families-{name}")
        parts.append(
            f"{layout(record['found'])}\n\n```sh\npython -m benchmarks.families {name}\n```\n\n"
            f"Machine: {record['machine']}. Commit {record['commit']}, {record['date']}."
        )
    return "\n\n".join(parts)


def _quality_page(found: dict[str, Any]) -> str:
    """Lay the scores out."""
    validations = "\n".join(
        f"| {one['step']:,} | {one['valid_perplexity']:.2f} | {one['bleu']:.1f} |"
        for one in found["validations"]
    )
    return (
        "## Multi30k English-German\n\n"
        "`convolutional-small`, ConvS2S with attention in every layer, sees the batches that "
        f"[`recurrent-small`](recurrent.md) sees. Lower-cased BLEU on {SET}, beam 4, average of "
        f"the last checkpoints: **{found['bleu']:.1f}** with {found['parameters']:,} weights after "
        f"{found['steps']:,} steps and {found['target_tokens']:,} target tokens. The goal was "
        f"{GOAL:.0f}.\n\nValidation while training (greedy, cased, a single checkpoint):\n\n"
        f"| step | perplexity | BLEU |\n| --- | --- | --- |\n{validations}\n\n"
        f"{found.get('note', '')}".strip()
    )


def _speed_page(found: dict[str, Any]) -> str:
    """Lay the speeds out, each beside the Transformer's in the same turn."""
    return (
        "## Speed beside a Transformer of equal size\n\n"
        f"{speed_table(found['systems'])}\n\n{found.get('note', '')}".strip()
    )


def speed_table(systems: dict[str, Any]) -> str:
    """Lay the speeds of systems out, each beside the first one's in the same turn."""
    first = next(iter(systems.values()))
    rows = "\n".join(
        f"| {name} | {one['parameters']:,} | {_times(one, first, 'train', 'target tokens')} "
        f"| {_times(one, first, 'translate', 'sentences')} |"
        for name, one in systems.items()
    )
    commands = "\n".join(f"- {name}: `{one['command']}`" for name, one in systems.items())
    return (
        "fp32, vocabulary 4,000. A training step has 1,024 tokens in sentences of about 25; a "
        "search has a beam of 4, 32 sentences at once, 16 source tokens and 20 of the translation. "
        "Times: the median of the turns' ratios.\n\n"
        "| model | weights | target tokens a second, training | times | share of the product rate "
        "| sentences a second, search | times | share |\n"
        f"| --- | --- | --- | --- | --- | --- | --- | --- |\n{rows}\n\n"
        f"Recipes and settings:\n\n{commands}"
    )


def _times(one: dict[str, Any], first: dict[str, Any], work: str, what: str) -> str:
    """Write rate, ratio and share of the product rate."""
    rates = [turn["per_second"][what] for turn in one[work]]
    ratios = [
        rate / turn["per_second"][what] for rate, turn in zip(rates, first[work], strict=True)
    ]
    share = sorted(turn["share"] for turn in one[work])[len(rates) // 2]
    middle = sorted(rates)[len(rates) // 2]
    return f"{middle:,.0f} | {sorted(ratios)[len(ratios) // 2]:.2f} | {share:.0%}"


if __name__ == "__main__":
    main()
