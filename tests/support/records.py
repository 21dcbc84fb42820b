"""Made-up attention documents, with heads of known behavior."""

from typing import Any

import numpy as np

from heedful.visualise.record import ExplorerRecord, ModelRecord, Node, Step

ENGLISH = "▁The ▁dog ▁that ▁chas ed ▁the ▁cat ▁was ▁very ▁tired ▁. </s>"
GERMAN = "▁Der ▁Hund ▁, ▁der ▁die ▁Katze ▁jag te ▁, ▁war ▁sehr ▁müde ▁. </s>"
SOURCE, TARGET = tuple(ENGLISH.split()), tuple(GERMAN.split())
HOSTILE = (
    "</script><script>document.title='caught'</script>",
    "<img src=x onerror=\"document.title='caught'\">",
    "▁שלום",
    "▁مرحبا",
    "👩‍👩‍👧‍👦",
    "🏳️‍🌈",
    "\u202eesrever",
    "\x00\x1b[31m",
    "\ud800",
    "e\u0301\u0301\u0301\u0301\u0301",
    "x" * 300,
    "",
    " ",
    "▁",
    "<!--",
    "&amp;",
    "${title}",
    "</s>",
)


def weights(
    layers: int, heads: int, queries: int, keys: int, *, is_masked: bool = False, seed: int = 1
) -> np.ndarray:
    """Rows that sum to one: each head looks near a place of its own, some at the end."""
    draws = np.random.default_rng(seed)
    rows, columns = np.arange(queries)[:, None], np.arange(keys)[None, :]
    scores = draws.normal(0, 0.7, (layers, heads, queries, keys))
    for layer, head in np.ndindex(layers, heads):
        place = rows * keys / queries + head % 4 - 1.5
        width = 0.5 + 0.3 * head + 0.4 * (layers - layer - 1)
        scores[layer, head] -= ((columns - place) / width) ** 2
        scores[layer, head, :, -1] += 1.5 * (head % 3 == 2)
    if is_masked:
        scores[..., columns > rows] = -np.inf
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def steps(target: tuple[str, ...], seed: int = 2) -> tuple[Step, ...]:
    """Ten candidates a step, the chosen one among them though not always the first."""
    draws = np.random.default_rng(seed)
    found = []
    for index, token in enumerate(target):
        others = [f"▁other{index}.{place}" for place in range(9)]
        tokens = [*others[:1], token, *others[1:]] if index % 5 == 4 else [token, *others]
        shares = np.sort(draws.dirichlet([0.25] * 14))[::-1][:10]
        found.append(Step(tuple(zip(tokens, map(float, shares), strict=True))))
    return tuple(found)


def beam(target: tuple[str, ...], width: int = 4, seed: int = 3) -> tuple[tuple[Node, ...], ...]:
    """A search that keeps `width` hypotheses, drops as many, and ends with `target`."""
    draws = np.random.default_rng(seed)
    found: list[tuple[Node, ...]] = []
    alive, is_best = [0.0], [0]
    for step, token in enumerate(target, start=1):
        is_last = step == len(target)
        nodes, totals = [], []
        for index in range(1 if is_last else 2 * width):
            parent = is_best[0] if index == 0 else int(draws.integers(len(alive)))
            total = alive[parent] - float(draws.exponential(0.3 if index == 0 else 0.8))
            fate, why = "open", ""
            if index >= width:
                fate, why = "dropped", f"The {width} places in the beam went to other hypotheses."
            elif index == 2 and step > 3:
                fate, why = "ended", "It came to the end symbol."
            if is_last:
                fate, why = "best", "It has the best score of all complete hypotheses."
            name = token if index == 0 else "</s>" if fate == "ended" else f"▁w{step}.{index}"
            place = parent if step == 1 or not found else _open(found[-1])[parent]
            nodes.append(
                Node(name, None if step == 1 else place, total, total / (1 + step / 6), fate, why)
            )
            if fate == "open":
                totals.append(total)
        found.append(tuple(nodes))
        alive = totals
    return tuple(found)


def _open(nodes: tuple[Node, ...]) -> list[int]:
    return [index for index, node in enumerate(nodes) if node.fate == "open"]


def model(
    source: tuple[str, ...] = SOURCE,
    target: tuple[str, ...] = TARGET,
    *,
    name: str = "runs/en-de",
    layers: int = 2,
    heads: int = 4,
    seed: int = 1,
) -> ModelRecord:
    """A record with every optional part."""
    n, m = len(source), len(target)
    return ModelRecord(
        name=name,
        source=source,
        target=target,
        start="<s>",
        encoder=weights(layers, heads, n, n, seed=seed),
        decoder=weights(layers, heads, m, m, is_masked=True, seed=seed + 1),
        cross=weights(layers, heads, m, n, seed=seed + 2),
        text="".join(target[:-1]).replace("▁", " ").strip(),
        score=-0.7312345,
        steps=steps(target, seed),
        beam=beam(target, seed=seed),
    )


def record(
    *models: ModelRecord, title: str = "The dog that chased the cat was very tired."
) -> ExplorerRecord:
    """One or two models; by default the small example."""
    return ExplorerRecord(title, models or (model(),))


def opened_table(place: Any) -> Any:
    """Open the table behind a picture; the browser tells the page of the opening a moment later."""
    details = place.locator("details")
    if details.get_attribute("open") is None:
        details.locator("summary").click()
    table = details.locator("table")
    table.wait_for()
    return table


def long(tokens: int, *, name: str = "runs/en-de", seed: int = 1) -> ModelRecord:
    """A base model's sentence of this many tokens."""
    source = [*SOURCE[:-1]] * tokens
    target = [*TARGET[:-1]] * tokens
    source, target = ((*words[: tokens - 1], "</s>") for words in (source, target))
    return model(source, target, name=name, layers=6, heads=8, seed=seed)
