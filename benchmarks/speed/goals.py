"""The speed goals and the measured values."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Found = dict[str, Any]

WORKERS = "as many workers as cores"
# Of fewer lines BLEU depends on a word or two.
_ENOUGH = 1000
_FLOAT_GAIN = 1.2  # of translation in fp32, and in bf16 beside a peer's fp32
# Times Joey NMT, where bf16 products are some four times as fast as fp32's, and elsewhere.
_FAST_BF16, _SLOW_BF16, _GREAT_GAIN = 10.0, 6.0, 3.0


@dataclass(frozen=True)
class Goal:
    """A row of the table of goals."""

    work: str
    ours: str
    theirs: str
    """The two measured values."""
    peer: str
    """The peer's name."""
    ratio: float
    wanted: float
    at_most: bool = False
    """Whether the goal is an upper bound."""
    unit: str = "times"
    """Of the ratio: times as fast, or what else."""

    @property
    def met(self) -> bool:
        """Whether the goal was reached."""
        return self.ratio <= self.wanted if self.at_most else self.ratio >= self.wanted

    def row(self) -> str:
        """Write the row."""
        sign = "at most " if self.at_most else ""
        said = f"{self.ratio:.2f} {self.unit}"
        met = "reached" if self.met else "not reached"
        return (
            f"| {self.work} | {self.ours} | {self.theirs} | {self.peer} | **{said}** "
            f"| {sign}{self.wanted:g} {self.unit} | {met} |"
        )


def goals(found: dict[str, Found]) -> list[Goal]:
    """Compare the results with the goals."""
    return [goal for name, rows in _GOALS.items() if name in found for goal in rows(found[name])]


def toolkit(measurement: Found) -> str:
    """Return the name of the system, without the variant."""
    return str(measurement["who"]).split()[0]


def fastest(measurements: list[Found], *names: str) -> Found | None:
    """Find the fastest of some toolkits, all but heedful when none is named."""
    others = [
        one
        for one in measurements
        if (toolkit(one) in names if names else toolkit(one) != "heedful")
    ]
    return min(others, key=lambda one: one["seconds"]["median"], default=None)


def _training(found: Found) -> list[Goal]:
    """Rate of whole commands; Joey NMT is in fp32, so the goal depends on products in bf16."""
    if any("missing" in turn["joey"] for turn in found["turns"]):
        return []
    rates = training_rates(found)
    return [
        Goal(
            f"training, an epoch of Multi30k with `{found['recipe']}`, command to command",
            f"{rates['heedful']:,.0f} target tokens/s",
            f"{rates['joey']:,.0f}",
            "Joey NMT",
            rates["heedful"] / rates["joey"],
            _FAST_BF16 if _bf16_gain(found) >= _GREAT_GAIN else _SLOW_BF16,
        )
    ]


def training_rates(found: Found) -> dict[str, float]:
    """Target tokens a second of the better turn of each, which the neighbours disturbed least."""
    return {
        who: max(turn[who]["target_tokens"] / _seconds(turn[who]) for turn in found["turns"])
        for who in ("heedful", "joey")
    }


def _bf16_gain(found: Found) -> float:
    """Compute how many times as fast products are in bf16 as in fp32; infinite if unknown."""
    rates = found.get("products")
    return float("inf") if rates is None else rates["bf16"] / rates["fp32"]


def _seconds(turn: Found) -> float:
    """Read the seconds of a whole command."""
    seconds = turn["seconds"]
    return float(seconds[0] if isinstance(seconds, list) else seconds)


def _step(name: str, found: Found, wanted: float, share: float) -> list[Goal]:
    """Tokens a second of a step, and its share of the products."""
    ours = found["measurements"][0]
    precision = ours["precision"]
    work = f"training step, {found['what']['recipe']}, {precision}"
    rows = []
    peer = fastest(found["measurements"], *(() if name == "step-fp32" else ("marian",)))
    if peer is not None:
        rates = [one["per_second"]["tokens"] for one in (ours, peer)]
        mine, theirs = (f"{rate:,.0f}" for rate in rates)
        speed = rates[0] / rates[1]
        rows.append(Goal(work, f"{mine} tokens/s", theirs, peer["who"], speed, wanted))
    return [*rows, _share(found, "share of products in it", share)]


def _share(found: Found, work: str, wanted: float) -> Goal:
    """Show the share of a step in the rate of large products."""
    ours = found["measurements"][0]
    rate = found["machine"]["product_gflops"][ours["precision"]]
    return Goal(
        work,
        f"{ours['gflops']:,.0f} GFLOP/s",
        f"{rate:,.0f}",
        "products measured here",
        ours["share"],
        wanted,
        unit="of them",
    )


def _small_step(found: Found, wanted: float) -> list[Goal]:
    """Show a small recipe's step as a share of large products and of its own."""
    ours = found["measurements"][0]
    alone = ours["products alone"]
    return [
        _share(found, f"share of products in a step of `{found['what']['recipe']}`", wanted),
        Goal(
            "the same, of its own products alone",
            f"{ours['seconds']['median']:.3f} s",
            f"{alone['seconds']:.3f} s",
            "its products alone",
            alone["of a step"],
            0.8,
            unit="of it",
        ),
    ]


def _memory(found: Found) -> list[Goal]:
    """Memory of a large step."""
    ours, *others = found["compared"]["measurements"]
    alone = found["alone"]["measurements"][0]
    rows = []
    if others:
        peer = min(others, key=lambda one: one["memory"])
        rows.append(
            Goal(
                f"peak memory of a step, {ours['counts']['target tokens']:,} tokens a side",
                _gigabytes(ours["memory"]),
                _gigabytes(peer["memory"]),
                peer["who"],
                ours["memory"] / peer["memory"],
                1 / 3,
                at_most=True,
            )
        )
    return [
        *rows,
        Goal(
            f"the same, {alone['counts']['target tokens']:,} tokens a side",
            _gigabytes(alone["memory"]),
            "",
            "alone",
            alone["memory"] / 1e9,
            12.0,
            at_most=True,
            unit="GB",
        ),
    ]


def _translate(found: Found, what: str, wanted: float) -> list[Goal]:
    """Sentences a second in each precision that both have, and BLEU, everybody at their best."""
    return [
        *_translate_in("int8", found, what, wanted),
        *_translate_in("fp32", found, what, _FLOAT_GAIN),
        *_translate_in("bf16", found, what, _FLOAT_GAIN, "fp32"),
    ]


def _translate_in(
    precision: str, found: Found, what: str, wanted: float, theirs: str = ""
) -> list[Goal]:
    """
    Sentences a second beside a worker for each core, and beside one for all.

    `theirs`: the peer's precision, if it is another one.
    """
    measurements = [
        one
        for one in found["measurements"]
        if one["precision"] == (precision if toolkit(one) == "heedful" else theirs or precision)
    ]
    several = [one for one in measurements if one["who"].endswith("workers")]
    alone = [one for one in measurements if one not in several]
    workers = fastest(several, "ctranslate2")
    ours, peer = fastest(alone, "heedful"), fastest(alone, "ctranslate2")
    if ours is None or peer is None:
        return []
    work = f"translating, beam {found['what']['beam']}, {what}, {precision}"
    # a sentence that waits for the one before occupies one worker
    note = " (one of them at work)" if found["what"]["batch"] == 1 else ""
    against = [(f"{work}, beside {WORKERS}{note}", workers)] if workers else []
    rows = [
        Goal(
            name,
            f"{ours['per_second']['sentences']:,.1f} sentences/s",
            f"{other['per_second']['sentences']:,.1f}",
            other["who"],
            other["seconds"]["median"] / ours["seconds"]["median"],
            wanted,
        )
        for name, other in (*against, (f"{work}, beside one for all cores", peer))
    ]
    if "bleu" in ours and not theirs and found["what"]["lines"] >= _ENOUGH:
        rows.append(
            Goal(
                "BLEU of these",
                f"{ours['bleu']:.2f}",
                f"{peer['bleu']:.2f}",
                peer["who"],
                abs(ours["bleu"] - peer["bleu"]),
                0.1,
                at_most=True,
                unit="apart",
            )
        )
    return rows


def _lines(found: Found) -> list[Goal]:
    """Lines of mixed lengths, against everybody; some are too slow for all of them."""
    rows = []
    for part, name, wanted in (("all", "ctranslate2", 1.5), ("part", "marian", 1.0)):
        measurements = found[part]["measurements"]
        ours, peer = fastest(measurements, "heedful"), fastest(measurements, name)
        if ours is not None and peer is not None:
            rows.append(
                Goal(
                    f"translating {found[part]['what']['lines']:,} lines of mixed lengths",
                    f"{ours['per_second']['sentences']:,.1f} lines/s",
                    f"{peer['per_second']['sentences']:,.1f}",
                    peer["who"],
                    peer["seconds"]["median"] / ours["seconds"]["median"],
                    wanted,
                )
            )
    return rows


def _stream(found: Found) -> list[Goal]:
    """Memory of a long text."""
    few, many = (found[name]["measurements"][0] for name in ("few", "many"))
    row = Goal(
        f"memory of translating {many['counts']['sentences']:,} lines",
        f"{many['memory'] / 1e6:,.0f} MB",
        f"{few['memory'] / 1e6:,.0f} MB",
        f"{few['counts']['sentences']:,} lines",
        many["memory"] / few["memory"],
        1.1,
        at_most=True,
    )
    return [row]


def _start(found: Found) -> list[Goal]:
    """Seconds to the first translation."""
    ours, bare = (found[name]["median"] for name in ("first translation", "import torch"))
    row = Goal(
        "start of `translate` to the first translation",
        f"{ours:.2f} s",
        f"{bare:.2f} s",
        "`import torch`",
        ours - bare,
        0.7,
        at_most=True,
        unit="s more",
    )
    return [row]


def _gigabytes(size: int) -> str:
    """Write a size."""
    return f"{size / 1e9:.2f} GB"


_GOALS: dict[str, Callable[[Found], list[Goal]]] = {
    "training": _training,
    "step": lambda found: _step("step", found, 2.3, 0.6),
    "step-fp32": lambda found: _step("step-fp32", found, 1.5, 0.8),
    "step-small": lambda found: [
        *_small_step(found["small"], 0.65),
        *_small_step(found["multi30k"], 0.45),
    ],
    "memory": _memory,
    "translate": lambda found: _translate(found, "32 at a time", 1.5),
    "translate-64": lambda found: _translate(found, "64 at a time", 1.5),
    "translate-one": lambda found: _translate(found, "one at a time", 3.0),
    "translate-random": lambda found: [
        goal
        for what, measured in found.items()
        for goal in _translate(measured, f"random weights, {what}", 1.5)
    ],
    "lines": _lines,
    "stream": _stream,
    "start": _start,
}
