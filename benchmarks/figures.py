"""
All pages of results, and the measured figures in README and docs, written from records.

    python -m benchmarks.figures

A page of results is the `PAGE` of its module and is written completely. On other pages a figure is
enclosed in two comments, such as ``<!--quickstart.bleu-->99.2<!--/-->``, and only the figure is
replaced. `tests/docs` fails if a page differs from the records.
"""

import json
import re
from importlib import import_module
from pathlib import Path

from benchmarks import later_parts, reward, sequences
from benchmarks.report import RESULTS, ROOT, ResultPage, measurements_of
from benchmarks.speed.comparisons import fastest, searches
from benchmarks.speed.page import page_texts
from benchmarks.speed.whole import best_rates

_MARK = re.compile(r"<!--([a-z0-9.-]+)-->([^\n]*?)<!--/-->")


def rewrite() -> list[Path]:
    """Write the pages that differ from the records; return the paths of these pages."""
    changed = {
        path: text
        for path, text in texts().items()
        if not path.exists() or path.read_text("utf-8") != text
    }
    for path, text in changed.items():
        path.write_text(text, encoding="utf-8")
    return [*changed]


def texts() -> dict[Path, str]:
    """Build the text of every page of results, and of every other page with a figure."""
    pages = {RESULTS / f"{name}.md": text for name, text in results().items()}
    known = figures()
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if RESULTS not in path.parents and _MARK.search(text := path.read_text("utf-8")):
            pages[path] = fill_in(text, known)
    return pages


def fill_in(text: str, known: dict[str, str]) -> str:
    """Replace the figures between comments."""

    def replace(mark: re.Match[str]) -> str:
        name = mark[1]
        if name not in known:
            raise SystemExit(f"there is no figure {name}; add it to benchmarks/figures.py")
        return f"<!--{name}-->{known[name]}<!--/-->"

    return _MARK.sub(replace, text)


def results() -> dict[str, str]:
    """Build the texts of all pages of results that have records."""
    return {page.name: text for page in _pages() if (text := page.text())} | page_texts()


def _pages() -> list[ResultPage]:
    """Return the page of every module that has one."""
    files = [
        file
        for file in sorted(Path(__file__).parent.rglob("*.py"))
        if re.search(r"^PAGE\b", file.read_text("utf-8"), re.MULTILINE)
    ]
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    return [import_module(name).PAGE for name in names]


def figures() -> dict[str, str]:
    """Format every figure that a page names."""
    known = {
        name: form.format_map(measurements_of(record))
        for name, (record, form) in _AS_MEASURED.items()
    }
    # add figures that were measured by hand, which are recorded as texts
    for name, record in json.loads((RESULTS / "asides.json").read_text("utf-8")).items():
        known |= {f"{name}.{what}": str(text) for what, text in record["measurements"].items()}
    for part in (_of_results, _of_recurrent, _of_sequences, _of_speed, later_parts.figures):
        known |= part()
    return known


_AS_MEASURED = {
    "multi30k.minutes": ("multi30k", "{minutes:.0f}"),
    "multi30k.lower-cased": ("multi30k", "{scores[0][lower-cased]:.1f}"),
    "multi30k.cased": ("multi30k", "{scores[0][bleu]:.1f}"),
    "quickstart.install": ("quickstart", "{install_seconds:.0f}"),
    "quickstart.seconds": ("quickstart", "{seconds:.0f}"),
    "quickstart.bleu": ("quickstart", "{bleu:.1f}"),
    "quickstart.help": ("quickstart", "{help_seconds:.2f}"),
    "serving.clients": ("serving", "{load[clients]}"),
    "serving.share": ("serving", "{load[share]:.2f}"),
    "serving.p99": ("serving", "{load[p99]:.1f}"),
    "joey.version": ("joey", "{version}"),
    "joey.sentences": ("joey", "{rows[0][sentences]}"),
    "recurrent.bleu": ("recurrent-quality", "{runs[attention][bleu]:.1f}"),
    "recurrent.without": ("recurrent-quality", "{runs[without][bleu]:.1f}"),
    "experts.bleu": ("experts-quality", "{bleu:.1f}"),
    "convolutional.bleu": ("families-quality", "{bleu:.1f}"),
}
"""The record of each figure and the format of its measurements, by the figure's name."""


def _of_results() -> dict[str, str]:
    """Format figures that are computed from the records of several pages."""
    joey_nmt, tuned = measurements_of("joey")["rows"], measurements_of("reward")["systems"]
    ids = next(
        row
        for row in measurements_of("prepare")["rows"]
        if row["processes"] == 2 and row["what"] == "ids"
    )
    return {
        **{
            f"{name}.{metric}": reward.change(tuned[name]["against_likelihood"][metric])
            for name in ("reward", "risk")
            for metric in ("bleu", "gleu")
        },
        "prepare.pairs": f"{60 / ids['seconds']:.1f}",
        "prepare.memory": f"{ids['peak'] / 1e6:,.0f}",
        "joey.equal": f"{min(row['equal'] for row in joey_nmt)}",
        "joey.difference": f"{max(row['difference'] for row in joey_nmt):.1e}",
    }


def _of_recurrent() -> dict[str, str]:
    """Format figures of other model families; step and search ratios are the smallest measured."""
    speed = measurements_of("recurrent-speed")
    ratios = {
        name: min(
            ours["per_second"][unit] / theirs["per_second"][unit]
            for ours, theirs in (report["measurements"] for report in speed[part].values())
        )
        for name, part, unit in (
            ("step", "steps", "target tokens"),
            ("search", "searches", "sentences"),
        )
    }
    ours, theirs = best_rates(speed["epoch"], "own_seconds").values()
    ratios["epoch"] = ours / theirs
    models = {
        "recurrent": measurements_of("recurrent-quality")["runs"]["attention"],
        "experts": measurements_of("experts-quality"),
        "convolutional": measurements_of("families-quality"),
    }
    return {
        **{f"recurrent.{name}": f"{ratio:.1f}" for name, ratio in ratios.items()},
        **{f"{name}.parameters": f"{m['parameters'] / 1e6:.1f}" for name, m in models.items()},
    }


def _of_sequences() -> dict[str, str]:
    """Format figures of the tasks other than translation."""
    return {
        f"{name}.{kind}": text
        for name, row in measurements_of("sequences").items()
        for kind, text in (
            ("steps", f"{row['steps']:,}"),
            ("minutes", f"{row['minutes']:.0f}"),
            ("exact", sequences.score(row["scores"], "exact_match")),
            ("cer", sequences.score(row["scores"], "cer")),
        )
    }


def _of_speed() -> dict[str, str]:
    """Format speed ratios: of a step to Hugging Face's Marian, of searches to CTranslate2."""
    ours, *others = measurements_of("speed/step")["measurements"]
    known = {"step.share": f"{100 * ours['share']:.0f}"}
    sides = {"step": (ours, fastest(others, "marian"))}
    for folder, prefix in (("speed", ""), ("speed-bf16", "bf16-")):
        for name in ("translate", "translate-one"):
            search, *peers = searches(measurements_of(f"{folder}/{name}"), "int8")
            peer = fastest([side for side in peers if side is not None])
            sides[f"{prefix}{name}"] = search, peer
            for who, side in (("bleu", search), ("peer-bleu", peers[-1])):
                known[f"{prefix}{name}.{who}"] = f"{side.get('bleu', 0):.2f}" if side else ""
    for name, (mine, peer) in sides.items():
        if mine is not None and peer is not None:
            ratio = peer["seconds"]["median"] / mine["seconds"]["median"]
            known[f"{name}.ratio"] = f"{ratio:.{1 if name == 'step' else 2}f}"
    return known


if __name__ == "__main__":
    for changed in rewrite():
        print(changed.relative_to(ROOT))
