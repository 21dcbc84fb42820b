"""The speed goals and the measured values."""

from dataclasses import dataclass
from typing import Any

Found = dict[str, Any]

WORKERS = "as many workers as cores"
# Of fewer lines BLEU depends on a word or two.
_ENOUGH = 1000


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
    rows: list[Goal] = []
    if "training" in found:
        rows += _training(found["training"])
    for name, wanted, share in (("step", 2.3, 0.6), ("step-fp32", 1.5, 0.8)):
        if name in found:
            rows += _step(name, found[name], wanted, share)
    if "memory" in found:
        rows += _memory(found["memory"])
    for name, what in (("translate", "32 at a time"), ("translate-one", "one at a time")):
        if name in found:
            rows += _translate(found[name], what)
    if "lines" in found:
        rows += _lines(found["lines"])
    if "stream" in found:
        rows.append(_stream(found["stream"]))
    if "start" in found:
        rows.append(_start(found["start"]))
    return rows


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
    """Rate of whole commands: the better turn of each, which the neighbours disturbed least."""
    if any("missing" in turn["joey"] for turn in found["turns"]):
        return []
    rates = {
        who: max(turn[who]["target_tokens"] / _seconds(turn[who]) for turn in found["turns"])
        for who in ("heedful", "joey")
    }
    return [
        Goal(
            f"training, an epoch of Multi30k with `{found['recipe']}`, command to command",
            f"{rates['heedful']:,.0f} target tokens/s",
            f"{rates['joey']:,.0f}",
            "Joey NMT",
            rates["heedful"] / rates["joey"],
            10.0,
        )
    ]


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
    rate = found["machine"]["product_gflops"][precision]
    return [
        *rows,
        Goal(
            "share of products in it",
            f"{ours['gflops']:,.0f} GFLOP/s",
            f"{rate:,.0f}",
            "products measured here",
            ours["share"],
            share,
            unit="of them",
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


def _translate(found: Found, what: str) -> list[Goal]:
    """Sentences a second, and BLEU, everybody at their best."""
    measurements = found["measurements"]
    several = [one for one in measurements if one["who"].endswith("workers")]
    alone = [one for one in measurements if one not in several]
    workers = fastest(several, "ctranslate2")
    ours, peer = fastest(alone, "heedful"), fastest(alone, "ctranslate2")
    if ours is None or peer is None:
        return []
    work = f"translating, beam {found['what']['beam']}, {what}, {ours['precision']}"
    # a sentence that waits for the one before occupies one worker
    note = " (one of them at work)" if found["what"]["batch"] == 1 else ""
    against = [(f"{work}, beside {WORKERS}{note}", workers, 1.0)] if workers else []
    rows = [
        Goal(
            name,
            f"{ours['per_second']['sentences']:,.1f} sentences/s",
            f"{other['per_second']['sentences']:,.1f}",
            other["who"],
            other["seconds"]["median"] / ours["seconds"]["median"],
            wanted,
        )
        for name, other, wanted in (*against, (f"{work}, beside one for all cores", peer, 1.5))
    ]
    if "bleu" in ours and found["what"]["lines"] >= _ENOUGH:
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
    for part, name in (("all", "ctranslate2"), ("part", "marian")):
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
                    1.0,
                )
            )
    return rows


def _stream(found: Found) -> Goal:
    """Memory of a long text."""
    few, many = (found[name]["measurements"][0] for name in ("few", "many"))
    return Goal(
        f"memory of translating {many['counts']['sentences']:,} lines",
        f"{many['memory'] / 1e6:,.0f} MB",
        f"{few['memory'] / 1e6:,.0f} MB",
        f"{few['counts']['sentences']:,} lines",
        many["memory"] / few["memory"],
        1.1,
        at_most=True,
    )


def _start(found: Found) -> Goal:
    """Seconds to the first translation."""
    ours, bare = (found[name]["median"] for name in ("first translation", "import torch"))
    return Goal(
        "start of `translate` to the first translation",
        f"{ours:.2f} s",
        f"{bare:.2f} s",
        "`import torch`",
        ours - bare,
        0.7,
        at_most=True,
        unit="s more",
    )


def _gigabytes(size: int) -> str:
    """Write a size."""
    return f"{size / 1e9:.2f} GB"
