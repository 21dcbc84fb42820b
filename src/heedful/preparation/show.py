"""Training pairs as text, subword by subword, exactly as the model sees them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch

from heedful.data.augment import augment_pairs
from heedful.data.batching import Collator
from heedful.data.coverage import unknown_parts
from heedful.data.encoded.dataset import EncodedPairs
from heedful.data.encoded.texts import Texts
from heedful.errors import TextError
from heedful.runs.folder import RunFolder
from heedful.runs.hub_names import run_folder
from heedful.runs.run import Run
from heedful.tokenization.tokenizer import END, PAD, SAMPLED_KINDS, START, UNKNOWN, Tokenizer


def show_pairs(
    folder: str | Path,
    *,
    corpus: str = "",
    first: int = 0,
    count: int = 5,
    ids: bool = False,
    seed: int = 1,
) -> Iterator[str]:
    """
    Show some of the training pairs.

    `corpus`: name of the corpus; if empty, the first in alphabetical order.

    Sampled subwords and changed text are examples, because training draws new ones in every epoch.
    """
    view = _PairView.open(Path(folder), ids, seed)
    data = _of_corpus(view.data, corpus)
    pairs = EncodedPairs.open(data, view.tokenizer)
    if first >= len(pairs):
        raise TextError(
            f"--first must be the index of a pair, from 0 to {len(pairs) - 1:,}, but got {first:,}."
        )
    texts = Texts.open(data) if (data / "source.text").exists() else None
    for number in range(first, min(first + count, len(pairs))):
        source, target = (side.tolist() for side in pairs.pair(number))
        text = None
        if texts is not None:
            sources, targets = texts.pairs(number, number + 1)
            text = sources[0], targets[0]
        yield f"pair {number}"
        yield from view.lines(source, target, text)


def show_pair(
    folder: str | Path, source: str, target: str, *, ids: bool = False, seed: int = 1
) -> Iterator[str]:
    """Show a given pair; no training data is needed, so any run that translates can be used."""
    view = _PairView.open(Path(folder), ids, seed)
    yield from view.lines(*view.encode((source, target)), (source, target))


def _of_corpus(data: Path, name: str) -> Path:
    """Find the folder with the ids of one corpus."""
    parts = {meta.parent.name: meta.parent for meta in sorted(data.glob("*/meta.json"))}
    if name and name not in parts:
        there = f"only {', '.join(parts)}" if parts else "only one corpus, without a name"
        raise TextError(f"--corpus must name a corpus of {data.parent}, which has {there}.")
    if name or parts:
        return parts[name or min(parts)]
    return data


@dataclass(frozen=True)
class _PairView:
    """The tokenizer, symbols and settings that determine how the model sees a pair."""

    tokenizer: Tokenizer
    collator: Collator
    data: Path
    sampling: float
    augment: str
    with_ids: bool
    generator: Random

    @classmethod
    def open(cls, path: Path, with_ids: bool, seed: int) -> "_PairView":
        """Open a run folder, or a prepared folder with the default special symbols."""
        path = run_folder(path)
        folder, generator = RunFolder(path), Random(seed)
        if not folder.config.exists():
            tokenizer, collator = Tokenizer.load(path), Collator(PAD, START, END)
            return cls(tokenizer, collator, folder.data, 0.0, "", with_ids, generator)
        run = Run.open(path)
        with torch.device("meta"):
            collator = run.collator(run.build())
        data = run.config.data
        drawn = data.subword_sampling, data.augment
        return cls(run.tokenizer, collator, folder.data, *drawn, with_ids, generator)

    def lines(
        self, source: list[int], target: list[int], text: tuple[str, str] | None
    ) -> Iterator[str]:
        """Show a pair; if its text is known, also show unknown parts, changed text and samples."""
        yield from self._rows("", source, target)
        if text is None:
            return
        for side, line in zip(("source", "target"), text, strict=True):
            if parts := unknown_parts(self.tokenizer, [line], side):
                yield f"  unknown in the {side}: {' '.join(parts)}"
        (changed,) = augment_pairs([text], self.augment, self.generator)
        if changed != text:
            yield from self._rows("changed ", *self.encode(changed))
        if self.sampling and self.tokenizer.kind in SAMPLED_KINDS:
            sampled = self.encode(text, self.sampling, self.generator)
            yield from self._rows("sampled ", *sampled)

    def encode(
        self, pair: tuple[str, str], sampling: float = 0.0, generator: Random | None = None
    ) -> tuple[list[int], list[int]]:
        """Encode both sides of a pair."""
        (source,) = self.tokenizer.encode_source([pair[0]], sampling, generator)
        (target,) = self.tokenizer.encode_target([pair[1]], sampling, generator)
        return source, target

    def _rows(self, kind: str, source: list[int], target: list[int]) -> Iterator[str]:
        """Show the three rows of a batch of one pair, and count their unknown subwords."""
        batch = self.collator.batch([source], [target])
        for name, (row,), spell in (
            ("source", batch.source, self.tokenizer.pieces_source),
            ("target in", batch.target_in, self.tokenizer.pieces_target),
            ("target out", batch.target_out, self.tokenizer.pieces_target),
        ):
            ids = row.tolist()
            unknown = ids.count(UNKNOWN)
            note = f"  ({unknown} unknown)" if unknown else ""
            yield f"  {kind + name:<18} {len(ids):>4}  {' '.join(spell(ids))}{note}"
            if self.with_ids:
                yield f"  {'':<18} {'':>4}  {' '.join(map(str, ids))}"
