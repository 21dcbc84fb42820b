"""
All pages of results, and the measured figures of README and docs, written from records.

    python -m benchmarks.figures

A page of results is written completely. Elsewhere a figure stands between two comments, such as
``<!--quickstart.bleu-->99.2<!--/-->``, and what stands there is replaced. `tests/docs` fails where
a page differs from the records.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import (
    batches,
    busy_machine,
    experts,
    families,
    joey,
    multi30k,
    parsing,
    parts,
    prepare,
    quickstart,
    recurrent,
    reward,
    sequences,
    tables,
    window,
)
from benchmarks.report import RESULTS, ROOT, measured
from benchmarks.serving import page as serving
from benchmarks.speed.comparisons import fastest, searches
from benchmarks.speed.page import page_texts, read_records
from benchmarks.speed.whole import best_rates

PAGES = [
    module.PAGE
    for module in (
        *(batches, busy_machine, experts, families, joey, multi30k, parsing, parts, prepare),
        *(quickstart, recurrent, reward, sequences, serving, tables, window),
    )
]
_MARK = re.compile(r"<!--([a-z0-9.-]+)-->([^\n]*?)<!--/-->")


def rewrite() -> list[Path]:
    """Write the pages that differ from the records; return them."""
    changed = {
        path: text
        for path, text in texts().items()
        if not path.exists() or path.read_text("utf-8") != text
    }
    for path, text in changed.items():
        path.write_text(text, encoding="utf-8")
    return [*changed]


def texts() -> dict[Path, str]:
    """Lay out every page of results, and every other page that names a figure."""
    pages = {RESULTS / f"{name}.md": text for name, text in results().items()}
    known = figures()
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if RESULTS not in path.parents and _MARK.search(text := path.read_text("utf-8")):
            pages[path] = filled(text, known)
    return pages


def filled(text: str, known: dict[str, str]) -> str:
    """Put the figures between their comments."""

    def replace(mark: re.Match[str]) -> str:
        name = mark[1]
        if name not in known:
            raise SystemExit(f"there is no figure {name}; add it to benchmarks/figures.py")
        return f"<!--{name}-->{known[name]}<!--/-->"

    return _MARK.sub(replace, text)


def results() -> dict[str, str]:
    """Lay out the pages of results that were measured."""
    return {page.name: text for page in PAGES if (text := page.text())} | page_texts()


def figures() -> dict[str, str]:
    """Write every figure that a page names."""
    known = _of_results() | _of_recurrent() | _of_sequences()
    for folder, prefix in (("speed", ""), ("speed-bf16", "bf16-"), ("speed-avx2", "avx2-")):
        for section, record in read_records(RESULTS / folder).items():
            known |= {f"{prefix}{name}": text for name, text in _of(section, record.measurements)}
    # measured by hand: a text for each, as its page has it
    for name, record in json.loads((RESULTS / "asides.json").read_text("utf-8")).items():
        known |= {f"{name}.{what}": str(text) for what, text in record["measurements"].items()}
    return known


def _of_results() -> dict[str, str]:
    """Write figures of the pages of results."""
    multi, quick = measured("multi30k"), measured("quickstart")
    served, joey_nmt = measured("serving")["load"], measured("joey")
    rows, tuned = measured("prepare")["rows"], measured("reward")["systems"]
    ids = next(row for row in rows if row["processes"] == 2 and row["what"] == "ids")
    return {
        **{
            f"{name}.{metric}": reward.change(tuned[name]["against_likelihood"][metric])
            for name in ("reward", "risk")
            for metric in ("bleu", "gleu")
        },
        "multi30k.minutes": f"{multi['minutes']:.0f}",
        "multi30k.lower-cased": f"{multi['scores'][0]['lower-cased']:.1f}",
        "multi30k.cased": f"{multi['scores'][0]['bleu']:.1f}",
        "quickstart.install": f"{quick['install_seconds']:.0f}",
        "quickstart.seconds": f"{quick['seconds']:.0f}",
        "quickstart.bleu": f"{quick['bleu']:.1f}",
        "quickstart.help": f"{quick['help_seconds']:.2f}",
        "prepare.pairs": f"{60 / ids['seconds']:.1f}",
        "prepare.memory": f"{ids['peak'] / 1e6:,.0f}",
        "serving.clients": f"{served['clients']}",
        "serving.share": f"{served['share']:.2f}",
        "serving.p99": f"{served['p99']:.1f}",
        "joey.version": joey_nmt["version"],
        "joey.equal": f"{min(row['equal'] for row in joey_nmt['rows'])}",
        "joey.sentences": f"{joey_nmt['rows'][0]['sentences']}",
        "joey.difference": f"{max(row['difference'] for row in joey_nmt['rows']):.1e}",
    }


def _of_recurrent() -> dict[str, str]:
    """Write figures of the other families; of several shapes the least."""
    runs, speed = measured("recurrent-quality")["runs"], measured("recurrent-speed")
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
    models = {
        "recurrent": runs["attention"],
        "experts": measured("experts-quality"),
        "convolutional": measured("families-quality"),
    }
    return {
        **{
            f"{name}.parameters": f"{model['parameters'] / 1e6:.1f}"
            for name, model in models.items()
        },
        **{f"{name}.bleu": f"{model['bleu']:.1f}" for name, model in models.items()},
        "recurrent.without": f"{runs['without']['bleu']:.1f}",
        "recurrent.epoch": f"{ours / theirs:.1f}",
        **{f"recurrent.{name}": f"{ratio:.1f}" for name, ratio in ratios.items()},
    }


def _of_sequences() -> dict[str, str]:
    """Write figures of the tasks other than translation."""
    return {
        f"{name}.{kind}": text
        for name, row in measured("sequences").items()
        for kind, text in (
            ("steps", f"{row['steps']:,}"),
            ("minutes", f"{row['minutes']:.0f}"),
            ("exact", sequences.score(row["scores"], "exact_match")),
            ("cer", sequences.score(row["scores"], "cer")),
        )
    }


Figures = Iterator[tuple[str, str]]


def _of(section: str, measurements: dict[str, Any]) -> Figures:
    """Write figures of a section of speed."""
    if section in _SECTIONS:
        yield from _SECTIONS[section](measurements)
    if section in ("translate", "translate-64", "translate-one"):
        yield from _of_translation(section, measurements)


def _of_training(section: dict[str, Any]) -> Figures:
    ours, theirs = best_rates(section).values()
    yield "training.ratio", f"{ours / theirs:.1f}"


def _of_step(name: str, section: dict[str, Any]) -> Figures:
    """Write our step beside the best of Hugging Face's Marian."""
    ours, *others = section["measurements"]
    peer, profile = fastest(others, "marian"), ours["profile"]
    if peer is None:
        return
    yield f"{name}.ratio", f"{peer['seconds']['median'] / ours['seconds']['median']:.1f}"
    yield f"{name}.share", f"{100 * ours['share']:.0f}"
    yield f"{name}.peer-share", f"{100 * peer['share']:.0f}"
    yield f"{name}.bound", f"{1 / peer['share']:.1f}"
    parts = {
        "products": ("mm", "mkldnn::_linear_pointwise"),
        "copies": ("copy_",),
        "attention": ("bmm", "_softmax"),
        "adam": ("_fused_adamw_",),
    }
    for part, operators in parts.items():
        share = sum(profile.get(operator, 0.0) for operator in operators)
        yield f"{name}.{part}", f"{100 * share:.0f}"
        if part == "products":
            yield f"{name}.rate-of-products", f"{100 * ours['share'] / share:.0f}"


def _of_small_steps(section: dict[str, Any]) -> Figures:
    """Write the shares of products in the steps of small recipes, in percent."""
    for name, report in section.items():
        step = report["measurements"][0]
        yield f"step-{name}.share", f"{100 * step['share']:.0f}"
        yield f"step-{name}.alone", f"{100 * step['products alone']['of a step']:.0f}"


def _of_kernels(section: dict[str, Any]) -> Figures:
    """Write times of compiled functions of training beside their twins, and of complete steps."""
    for row in section["functions"]:
        name = f"kernels.{row['function'].split()[0]}-{row['precision']}"
        yield name, f"{row['compiled']:.1f}"
        yield f"{name}-plain", f"{row['plain']:.1f}"
    for name, step in section["steps"].items():
        yield f"kernels.step-{name}", f"{step['ratio']:.2f}"
    yield "kernels.tokens", f"{section['functions'][0]['tokens']:,}"


def _of_search(section: dict[str, Any]) -> Figures:
    """Write searches with compiled functions beside plain ones, and the shares of their parts."""
    for batch, search in section["searches"].items():
        for row in search["rows"]:
            name, alone = f"search.{batch.split()[0]}-{row['precision']}", row["products alone"]
            for way in ("compiled", "plain"):
                yield f"{name}.{way}", f"{row[way]:.0f}"
            for part, share in row["profile"].items():
                yield f"{name}.{part.split()[0]}", f"{100 * share:.0f}"  # `layers`, `output`
            yield f"{name}.products", f"{100 * alone['of a pass']:.0f}"
            yield f"{name}.bound", f"{1 / alone['of a pass']:.2f}"
    for batch, times in section["best continuations"].items():
        for way in ("compiled", "plain"):
            yield f"search.continuations-{batch.split()[0]}.{way}", f"{times[way]:.3f}"
    for name, key in (("several", "batches at a time"), ("rows", "rows at a time")):
        for precision, times in section[key].items():
            yield f"search.{name}-{precision}", f"{times['ratio']:.2f}"


def _of_lines(section: dict[str, Any]) -> Figures:
    """Write how much faster than CTranslate2 lines of mixed lengths are translated."""
    rows = section["all"]["measurements"]
    ours, peer = fastest(rows, "heedful"), fastest(rows, "ctranslate2")
    if ours is not None and peer is not None:
        yield "lines.ratio", f"{peer['seconds']['median'] / ours['seconds']['median']:.2f}"


def _of_ranks(section: dict[str, Any]) -> Figures:
    runs = section["runs"]
    yield "ranks.one", f"{runs['1 of 1']['rate'] / runs['1 of 2']['rate']:.2f}"


def _of_a_gpu(section: dict[str, Any]) -> Figures:
    """Write speeds of the base model on a GPU beside the fastest peer's."""
    for work in ("step", "search"):
        ours, *peers = section[f"paper-base {work}"]["measurements"]
        peer = min(peers, key=lambda side: float(side["seconds"]["median"]))
        ratio = peer["seconds"]["median"] / ours["seconds"]["median"]
        yield f"gpu-{work}.ratio", f"{ratio:.2f}"
        yield f"gpu-{work}.share", f"{100 * ours['share']:.0f}"
        yield f"gpu-{work}.memory", f"{ours['memory'] / 1e9:.1f}"
        yield f"gpu-{work}.peer-memory", f"{peer['memory'] / 1e9:.1f}"


def _of_random_translation(section: dict[str, Any]) -> Figures:
    yield from _of_translation("translate-random", section["32 at a time"])
    yield from _of_translation("translate-random-64", section["64 at a time"])


def _of_translation(name: str, report: dict[str, Any]) -> Figures:
    """Write how much faster heedful is than CTranslate2, with a worker for each core and one."""
    for prefix, precision, peers in (
        ("", "int8", ""),
        ("fp32-", "fp32", ""),
        ("bf16-", "bf16", "fp32"),
    ):
        ours, alone, workers = searches(report, precision, peers)
        if ours is None or alone is None or workers is None:
            continue
        times = [side["seconds"]["median"] for side in (ours, alone, workers)]
        figure = f"{name}.{prefix}"
        yield f"{figure}ratio", f"{min(times[1:]) / times[0]:.2f}"  # the peer's better way
        yield f"{figure}of-workers", f"{times[1] / times[2]:.1f}"
        yield f"{figure}bound", f"{1 / workers['share']:.2f}"
        yield f"{figure}peer-share", f"{100 * workers['share']:.0f}"
        yield f"{figure}share", f"{100 * ours['share']:.0f}"
        for side, scored in (("bleu", ours), ("peer-bleu", workers)):
            if "bleu" in scored:
                yield f"{figure}{side}", f"{scored['bleu']:.2f}"
    for precision, rate in report["machine"]["product_gflops"].items():
        yield f"{name}.{precision}", f"{rate:,.0f}"


_SECTIONS: dict[str, Callable[[dict[str, Any]], Figures]] = {
    "training": _of_training,
    "step": lambda section: _of_step("step", section),
    "step-fp32": lambda section: _of_step("step-fp32", section),
    "step-small": _of_small_steps,
    "kernels": _of_kernels,
    "search": _of_search,
    "lines": _of_lines,
    "ranks": _of_ranks,
    "gpu": _of_a_gpu,
    "translate-random": _of_random_translation,
}


if __name__ == "__main__":
    for changed in rewrite():
        print(changed.relative_to(ROOT))
