"""
All measured figures of README and docs, written from JSON results.

    python -m benchmarks.figures

A page of results is written as a whole. Elsewhere a figure stands between two comments, such as
``<!--quickstart.bleu-->99.2<!--/-->``, and what stands there is replaced. `tests/docs` fails where
a page differs from the JSON.
"""

import re
from pathlib import Path
from typing import Any

from benchmarks.report import RESULTS, ROOT, page, read
from benchmarks.speed.goals import fastest, training_rates

_MARK = re.compile(r"<!--([a-z0-9.-]+)-->([^\n]*?)<!--/-->")


def rewrite() -> list[Path]:
    """Rewrite figures that differ from the JSON; return the changed files."""
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
    found = {RESULTS / f"{name}.md": text for name, text in results().items()}
    known = figures()
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if RESULTS not in path.parents and _MARK.search(text := path.read_text("utf-8")):
            found[path] = filled(text, known)
    return found


def filled(text: str, known: dict[str, str]) -> str:
    """Put the figures between their comments."""

    def one(mark: re.Match[str]) -> str:
        name = mark[1]
        if name not in known:
            raise SystemExit(f"there is no figure {name}; add it to benchmarks/figures.py")
        return f"<!--{name}-->{known[name]}<!--/-->"

    return _MARK.sub(one, text)


def results() -> dict[str, str]:
    """Lay out the pages of results."""
    # here, for they end with `rewrite` when they have measured
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
    from benchmarks.serving import page as serving
    from benchmarks.speed.page import PAGES, page_text

    bodies = {
        "batches": ("Batches", batches.body),
        "busy": (busy_machine.TITLE, busy_machine.body),
        "joey": ("Models of Joey NMT", joey.body),
        "multi30k": ("Multi30k English-German", multi30k.body),
        "parsing": ("Constituency parsing", parsing.body),
        "parts": ("A Transformer without a part", parts.body),
        "prepare": ("A million pairs prepared", prepare.body),
        "quickstart": ("Quickstart", quickstart.body),
        "reward": ("Fine-tuning by reward and by risk", reward.body),
        "sequences": ("Other sequences", sequences.body),
        "serving": (serving.TITLE, serving.body),
        "window": ("Self-attention to neighbours", window.body),
    }
    found = {}
    for name, (title, body) in bodies.items():
        if not (RESULTS / f"{name}.json").exists():  # not measured yet
            continue
        record = read(name)
        found[name] = page(title, body(record["found"]), record)
    found["families"] = f"# Families beside the Transformer\n\n{families.body()}\n"
    found["experts"] = f"# Mixtures of experts\n\n{experts.body()}\n"
    found["tables"] = f"# The paper's tables, made again\n\n{tables.body()}\n"
    found["recurrent"] = f"# Recurrent models\n\n{recurrent.body()}\n"
    return found | {name: page_text(RESULTS / name) for name in PAGES}


def figures() -> dict[str, str]:
    """Write every figure that a page names."""
    return _of_results() | _of_recurrent() | _of_speed() | _of_sequences() | _of_asides()


def _of_results() -> dict[str, str]:
    """Write figures of the pages of results."""
    flickr = read("multi30k")["found"]["scores"][0]
    quick, load = read("quickstart")["found"], read("serving")["found"]["load"]
    ids = next(
        row
        for row in read("prepare")["found"]["rows"]
        if row["processes"] == 2 and row["what"] == "ids"
    )
    joey = read("joey")["found"]
    tuned = read("reward")["found"]["systems"]
    return {
        **{f"{name}.bleu": _change(tuned[name], "bleu") for name in ("reward", "risk")},
        **{f"{name}.gleu": _change(tuned[name], "gleu") for name in ("reward", "risk")},
        "multi30k.minutes": f"{read('multi30k')['found']['minutes']:.0f}",
        "multi30k.lower-cased": f"{flickr['lower-cased']:.1f}",
        "multi30k.cased": f"{flickr['bleu']:.1f}",
        "quickstart.install": f"{quick['install_seconds']:.0f}",
        "quickstart.seconds": f"{quick['seconds']:.0f}",
        "quickstart.bleu": f"{quick['bleu']:.1f}",
        "quickstart.help": f"{quick['help_seconds']:.2f}",
        "prepare.pairs": f"{60 / ids['seconds']:.1f}",
        "prepare.memory": f"{ids['peak'] / 1e6:,.0f}",
        "serving.clients": f"{load['clients']}",
        "serving.share": f"{load['share']:.2f}",
        "serving.p99": f"{load['p99']:.1f}",
        "joey.version": joey["version"],
        "joey.equal": f"{min(row['equal'] for row in joey['rows'])}",
        "joey.sentences": f"{joey['rows'][0]['sentences']}",
        "joey.difference": f"{max(row['difference'] for row in joey['rows']):.1e}",
    }


def _change(system: dict[str, Any], metric: str) -> str:
    """Write the difference from the control, with its interval."""
    one = system["against_likelihood"][metric]
    low, high = one["interval"]
    return f"{one['difference']:+.2f} ({low:+.2f} to {high:+.2f})"


def _of_recurrent() -> dict[str, str]:
    """Write figures of the families before the Transformer; of several shapes the least."""
    runs = read("recurrent-quality")["found"]["runs"]
    speed = read("recurrent-speed")["found"]
    ratios = {
        name: min(
            report["measurements"][0]["per_second"][what]
            / report["measurements"][1]["per_second"][what]
            for report in speed[part].values()
        )
        for name, part, what in (
            ("step", "steps", "target tokens"),
            ("search", "searches", "sentences"),
        )
    }
    ours, theirs = (
        max(
            turn[who]["target_tokens"] / turn[who]["own_seconds"]
            for turn in speed["epoch"]["turns"]
        )
        for who in ("heedful", "joey")
    )
    return {
        "recurrent.parameters": f"{runs['attention']['parameters'] / 1e6:.1f}",
        "recurrent.bleu": f"{runs['attention']['bleu']:.1f}",
        "recurrent.without": f"{runs['without']['bleu']:.1f}",
        "experts.bleu": f"{read('experts-quality')['found']['bleu']:.1f}",
        "experts.parameters": f"{read('experts-quality')['found']['parameters'] / 1e6:.1f}",
        "convolutional.bleu": f"{read('families-quality')['found']['bleu']:.1f}",
        "convolutional.parameters": f"{read('families-quality')['found']['parameters'] / 1e6:.1f}",
        "recurrent.epoch": f"{ours / theirs:.1f}",
        **{f"recurrent.{name}": f"{ratio:.1f}" for name, ratio in ratios.items()},
    }


def _of_speed() -> dict[str, str]:
    """Write figures of the page of speed."""
    rates = training_rates(read("speed/training")["found"])
    bf16, fp32 = _step("step"), _step("step-fp32")
    profile = bf16["ours"]["profile"]
    products = profile["mm"] + profile["mkldnn::_linear_pointwise"]
    memory = read("speed/memory")["found"]
    attention = profile["bmm"] + profile["_softmax"]
    return {
        "training.ratio": f"{rates['heedful'] / rates['joey']:.1f}",
        "step.ratio": f"{bf16['ratio']:.1f}",
        "step.share": f"{100 * bf16['ours']['share']:.0f}",
        "step.peer-share": f"{100 * bf16['peer']['share']:.0f}",
        "step.bound": f"{1 / bf16['peer']['share']:.1f}",
        "step.products": f"{100 * products:.0f}",
        "step.rate-of-products": f"{100 * bf16['ours']['share'] / products:.0f}",
        "step.copies": f"{100 * profile['copy_']:.0f}",
        "step.attention": f"{100 * attention:.0f}",
        "step.adam": f"{100 * profile['_fused_adamw_']:.0f}",
        "step-fp32.share": f"{100 * fp32['ours']['share']:.0f}",
        "step-fp32.peer-share": f"{100 * fp32['peer']['share']:.0f}",
        "step-fp32.bound": f"{1 / fp32['peer']['share']:.1f}",
        "memory.ours": f"{memory['compared']['measurements'][0]['memory'] / 1e6:,.0f}",
        **_of_small_steps("speed"),
        **_of_translating("speed"),
        **_of_a_gpu(),
        **{f"bf16-{name}": text for name, text in _of_fast_bf16("speed-bf16").items()},
        **{f"avx2-{name}": text for name, text in _of_held_to_avx2("speed-avx2").items()},
    }


def _of_fast_bf16(folder: str) -> dict[str, str]:
    """Write figures of the page of a processor with fast products in bf16."""
    rates = training_rates(read(f"{folder}/training")["found"])
    runs = read(f"{folder}/ranks")["found"]["runs"]
    return {
        **_of_translating(folder),
        **_of_small_steps(folder),
        **_of_lines(folder),
        **_of_kernels(folder),
        **_of_search(folder),
        "training.ratio": f"{rates['heedful'] / rates['joey']:.1f}",
        "ranks.one": f"{runs['1 of 1']['rate'] / runs['1 of 2']['rate']:.2f}",
    }


def _of_held_to_avx2(folder: str) -> dict[str, str]:
    """Write figures of the page of a processor held to AVX2."""
    training = read(f"{folder}/training")["found"]
    rates = training_rates(training)
    small = read(f"{folder}/step-small")["found"]["small"]
    products = small["machine"]["product_gflops"]
    return {
        **_of_small_steps(folder),
        **_of_lines(folder),
        **_of_kernels(folder),
        **_of_search(folder),
        **_of_translating(folder),
        **{f"products.{name}": f"{rate:,.0f}" for name, rate in products.items()},
        "training.ratio": f"{rates['heedful'] / rates['joey']:.1f}",
    }


def _of_kernels(folder: str) -> dict[str, str]:
    """Write times of compiled functions of training beside their twins, and of whole steps."""
    found = read(f"{folder}/kernels")["found"]
    functions = {
        f"kernels.{one['function'].split()[0]}-{one['precision']}{what}": text
        for one in found["functions"]
        for what, text in (
            ("", f"{one['compiled']:.1f}"),
            ("-plain", f"{one['plain']:.1f}"),
        )
    }
    steps = {f"kernels.step-{name}": f"{one['ratio']:.2f}" for name, one in found["steps"].items()}
    tokens = {"kernels.tokens": f"{found['functions'][0]['tokens']:,}"}
    return functions | steps | tokens


def _of_search(folder: str) -> dict[str, str]:
    """Write searches with compiled functions beside plain ones, and the shares of their parts."""
    found = read(f"{folder}/search")["found"]
    searches = {
        f"search.{batch.split()[0]}-{one['precision']}.{what}": text
        for batch, each in found["searches"].items()
        for one in each["rows"]
        for what, text in (
            *((way, f"{one[way]:.0f}") for way in ("compiled", "plain")),
            *(
                (name.split()[0], f"{100 * share:.0f}")  # `layers` of `layers of the decoder`
                for name, share in one["profile"].items()
            ),
            ("products", f"{100 * one['products alone']['of a pass']:.0f}"),
            ("bound", f"{1 / one['products alone']['of a pass']:.2f}"),
        )
    }
    parts = {
        f"search.continuations-{batch.split()[0]}.{way}": f"{one[way]:.3f}"
        for batch, one in found["best continuations"].items()
        for way in ("compiled", "plain")
    }
    several = {
        f"search.several-{precision}": f"{one['ratio']:.2f}"
        for precision, one in found["batches at a time"].items()
    }
    rows = {
        f"search.rows-{precision}": f"{one['ratio']:.2f}"
        for precision, one in found["rows at a time"].items()
    }
    return searches | parts | several | rows


def _of_lines(folder: str) -> dict[str, str]:
    """Write how much faster than CTranslate2 lines of mixed lengths are translated."""
    measured = read(f"{folder}/lines")["found"]["all"]["measurements"]
    ours, peer = fastest(measured, "heedful"), fastest(measured, "ctranslate2")
    if ours is None or peer is None:
        raise SystemExit("lines must have heedful and CTranslate2")
    return {"lines.ratio": f"{peer['seconds']['median'] / ours['seconds']['median']:.2f}"}


def _of_small_steps(folder: str) -> dict[str, str]:
    """Write the shares of products in the steps of small recipes, in percent."""
    found = read(f"{folder}/step-small")["found"]
    steps = {name: one["measurements"][0] for name, one in found.items()}
    return {
        f"step-{name}.{what}": f"{100 * share:.0f}"
        for name, one in steps.items()
        for what, share in (("share", one["share"]), ("alone", one["products alone"]["of a step"]))
    }


def _of_a_gpu() -> dict[str, str]:
    """Write speeds of the base model on a GPU beside the fastest peer's."""
    figures = {}
    for work in ("step", "search"):
        ours, *peers = read("speed/gpu")["found"][f"paper-base {work}"]["measurements"]
        peer = min(peers, key=lambda one: float(one["seconds"]["median"]))
        figures |= {
            f"gpu-{work}.ratio": f"{peer['seconds']['median'] / ours['seconds']['median']:.2f}",
            f"gpu-{work}.share": f"{100 * ours['share']:.0f}",
            f"gpu-{work}.memory": f"{ours['memory'] / 1e9:.1f}",
            f"gpu-{work}.peer-memory": f"{peer['memory'] / 1e9:.1f}",
        }
    return figures


def _of_translating(folder: str) -> dict[str, str]:
    """Write speeds of translation beside CTranslate2's."""
    random = read(f"{folder}/translate-random")["found"]
    measured = {
        **{
            name: read(f"{folder}/{name}")["found"]
            for name in ("translate", "translate-64", "translate-one")
        },
        "translate-random": random["32 at a time"],
        "translate-random-64": random["64 at a time"],
    }
    return {
        f"{name}.{before}{what}": text
        for name, found in measured.items()
        for before, precisions in (
            ("", ("int8", "int8")),
            ("fp32-", ("fp32", "fp32")),
            ("bf16-", ("bf16", "fp32")),
        )
        if any(one["precision"] == precisions[0] for one in found["measurements"])
        for what, text in _sides(found, *precisions).items()
    }


def _of_sequences() -> dict[str, str]:
    """Write figures of the tasks other than translation."""
    from benchmarks.sequences import interval

    return {
        f"{name}.{kind}": text
        for name, one in read("sequences")["found"].items()
        for kind, text in (
            ("steps", f"{one['steps']:,}"),
            ("minutes", f"{one['minutes']:.0f}"),
            ("exact", interval(one["scores"]["exact_match"])),
            ("cer", interval(one["scores"]["cer"])),
        )
    }


def _of_asides() -> dict[str, str]:
    """Write figures that were measured by hand: a text for each, as its page has it."""
    return {
        f"{name}.{what}": str(text)
        for name, record in read("asides").items()
        for what, text in record["found"].items()
    }


def _sides(found: dict[str, Any], precision: str, theirs: str) -> dict[str, str]:
    """Write how much faster heedful is than CTranslate2, with one worker per core and with one."""
    of_peers = [one for one in found["measurements"] if one["precision"] == theirs]
    several = [one for one in of_peers if one["who"].endswith("workers")]
    rest = [one for one in of_peers if one not in several]
    own = [one for one in found["measurements"] if one["precision"] == precision]
    ours, alone = fastest(own, "heedful"), fastest(rest, "ctranslate2")
    workers = fastest(several, "ctranslate2")
    if ours is None or alone is None or workers is None:
        raise SystemExit(f"{precision} must have heedful and both ways of CTranslate2")
    times = [one["seconds"]["median"] for one in (ours, alone, workers)]
    figures = {
        "ratio": f"{min(times[1:]) / times[0]:.2f}",  # the peer's better way
        "of-workers": f"{times[1] / times[2]:.1f}",
        "bound": f"{1 / workers['share']:.2f}",
        "peer-share": f"{100 * workers['share']:.0f}",
        "share": f"{100 * ours['share']:.0f}",
        **{name: f"{rate:,.0f}" for name, rate in found["machine"]["product_gflops"].items()},
    }
    both = {"bleu": ours, "peer-bleu": workers}
    return figures | {what: f"{one['bleu']:.2f}" for what, one in both.items() if "bleu" in one}


def _step(name: str) -> dict[str, Any]:
    """Find our step, and the best of Hugging Face's Marian."""
    ours, *others = read(f"speed/{name}")["found"]["measurements"]
    peer = fastest(others, "marian")
    return {
        "ours": ours,
        "peer": peer,
        "ratio": peer["seconds"]["median"] / ours["seconds"]["median"],
    }


if __name__ == "__main__":
    for changed in rewrite():
        print(changed.relative_to(ROOT))
