"""
Mixtures of experts on Multi30k, and their speed compared with dense models.

    python -m benchmarks.experts quality [--runs FOLDER]
    python -m benchmarks.experts speed

`quality` trains `moe-small` (an hour on two cores). An unfinished run is continued; a finished run
is only measured again. `speed` compares `moe-small` with two dense Transformers: their feed-forward
networks have as many operations as its two experts, or as many weights as all eight experts. Writes
`docs/results/experts-*.json` and builds the page from them.
"""

from functools import partial
from pathlib import Path

from benchmarks.families import (
    Measured,
    Systems,
    measure_part,
    measure_quality,
    measure_speed,
    speed_table,
)
from benchmarks.report import ResultPage
from benchmarks.training import info, note, score_sentence, validation_table
from heedful.experiments.page import table
from heedful.experiments.record import Record

DENSE = ("model.experts.count=none",)
SYSTEMS: Systems = {
    "dense, as many operations": ("moe-small", (*DENSE, "model.d_ff=384")),
    "8 noisy experts, 2 a token": ("moe-small", ()),
    "8 balanced experts, 2 a token": ("moe-small", ("model.experts.gating=balanced",)),
    "dense, as many weights": ("moe-small", (*DENSE, "model.d_ff=1536")),
}


def main() -> None:
    """Measure one part, and write the page."""
    measure_part(__doc__, PAGE, partial(measure_speed, SYSTEMS), measure_mixture)


def measure_mixture(runs: Path) -> tuple[Measured, Measured]:
    """Train the mixture; return its scores and expert loads, and its translations."""
    measurements, outputs = measure_quality("moe-small", runs)
    return measurements | {"load": info(runs / "moe-small")["experts"]}, outputs


def quality(record: Record) -> str:
    """Lay out the scores and the loads of the experts."""
    measured = record.measurements
    return (
        "## Multi30k English-German\n\n"
        "`moe-small` is a Transformer with a mixture of 8 experts in every layer. Noisy gates "
        "choose 2 experts for each token. "
        f"{score_sentence(measured)}\n\n{validation_table(measured['validations'])}\n\n"
        "Share of tokens that each expert receives after training, as `heedful info` shows it "
        "(equal shares would be 25%):\n\n"
        + table(
            "mixture | experts",
            "`{name}` | {load}",
            ({"name": name, "load": load} for name, load in measured["load"].items()),
        )
        + note(record)
    )


def speed(record: Record) -> str:
    """Lay out the speeds, relative to the dense model with as many operations."""
    return f"## Speed compared with dense models\n\n{speed_table(record)}"


PAGE = ResultPage(
    "experts", "Mixtures of experts", {"experts-quality": quality, "experts-speed": speed}
)


if __name__ == "__main__":
    main()
