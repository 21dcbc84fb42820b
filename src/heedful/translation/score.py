"""Scores of given pairs by forced decoding, in constant memory; and alignment error by layer."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal

from heedful.alignment.links import read_gold
from heedful.arguments import checked
from heedful.data.coverage import untagged_warning
from heedful.data.length_batches import by_length
from heedful.errors import TextError
from heedful.search.scoring import target_ranks
from heedful.text.corpus import Corpus, read_lines
from heedful.text.file_formats import TextSource
from heedful.text.lines import json_line
from heedful.text.sentence_pairs import Files, Pairs, sentence_pairs
from heedful.tokenization.tokenizer import END
from heedful.translation.result import WordAlignment
from heedful.translation.translate import alignment_entry
from heedful.translation.translator import Translator, Warn

_WINDOW = 2048
_BATCH_TOKENS = 2048


@dataclass(frozen=True)
class ScoredPair:
    """Log-probabilities of a given translation."""

    tokens: tuple[str, ...]
    """Subwords of the translation, the end symbol last."""
    log_probabilities: tuple[float, ...]
    """Natural logarithm of the probability of each subword."""
    ranks: tuple[int, ...] | None = None
    """Rank of each token in the model's distribution, if requested."""
    alignment: WordAlignment | None = None
    """The word alignment, if requested."""
    source: str = field(default="", repr=False)
    """The source line."""

    @property
    def log_probability(self) -> float:
        """Log-probability of the whole translation, the end symbol included."""
        return sum(self.log_probabilities)

    @property
    def mean(self) -> float:
        """Mean log-probability per token."""
        return self.log_probability / len(self.log_probabilities)


def format_pair(
    number: int, pair: ScoredPair, format: str = "text", normalize: bool = False
) -> str:
    """
    Format a scored pair: its score and alignment, or a JSON object with all results.

    `number`: number of the pair, counted from 0. `format`: ``text`` or ``jsonl``. `normalize`:
    whether the text format has the mean per token instead of the sum; JSON has both.
    """
    if format == "jsonl":
        entry = {
            "line": number,
            "log_probability": pair.log_probability,
            "mean": pair.mean,
            "tokens": list(pair.tokens),
            "log_probabilities": list(pair.log_probabilities),
        }
        entry |= {} if pair.ranks is None else {"ranks": list(pair.ranks)}
        entry |= {} if pair.alignment is None else alignment_entry(pair.alignment)
        return json_line(entry)
    score = f"{pair.mean if normalize else pair.log_probability:.6f}"
    links = pair.alignment and pair.alignment.between_spaces(pair.source)
    return score if links is None else f"{score}\t{links}"


@checked
def score(
    run: Translator | Files,
    source: Files | None = None,
    target: Files | None = None,
    *,
    pairs: Pairs | None = None,
    ranks: bool = False,
    alignments: bool = False,
    align_by: str = "",
    weights: str = "default",
    device: str = "auto",
    precision: str = "auto",
    threads: int = 0,
    reading: Literal["exact", "text"] | None = None,
    from_language: str = "",
    to_language: str = "",
    warn: Warn | None = None,
) -> Iterator[ScoredPair]:
    """
    Compute how probable given translations are.

    Parameters
    ----------
    run : Translator, str, Path, TrainingResult or sequence of paths
        A translator, or the run folders that `Translator.load` takes.
    source, target : path, pattern or sequence of them, optional
        Line-aligned text.
    pairs : iterable of pairs of str, or table, optional
        Pairs in memory, instead of files, in any form that `heedful.train` takes.
    ranks : bool, default False
        Whether to return the rank of each token, 1 for the most probable.
    alignments : bool, default False
        Whether to return which word translates which.
    align_by : str, optional
        How alignments are extracted, such as ``layer=2,shift``.
    weights, device, precision, threads, reading : optional
        As for `Translator.load`; not used with a translator.
    from_language, to_language : str, optional
        Languages of the pairs, for multilingual models (`Translator.between`).
    warn : callable, optional
        Called with a message about missing language tags, or about rows of a table that are
        skipped.

    Returns
    -------
    iterator of ScoredPair
        One for each pair, in order, with `log_probability`, `mean` and `log_probabilities`.

    Notes
    -----
    The command `heedful score` does the same. Pairs are read as the iterator advances, so a text of
    any length takes little memory. Scores are natural logarithms, include the end symbol, and have
    no length penalty.
    """
    translator = run
    if not isinstance(translator, Translator):
        translator = Translator.load(
            translator,
            weights=weights,
            device=device,
            precision=precision,
            threads=threads,
            reading=reading,
        )
    translator = translator.between(from_language, to_language)
    sentences = sentence_pairs("score", source, target, pairs, warn, translator.run.direction)
    if alignments:
        translator.aligner.extraction(align_by)
    return _score(translator, sentences, ranks, align_by if alignments else None, warn)


def _score(
    translator: Translator,
    pairs: Iterator[tuple[str, str]],
    ranks: bool,
    align_by: str | None,
    warn: Warn | None,
) -> Iterator[ScoredPair]:
    """Score pairs, 2,048 at a time; ranks and alignments each take another pass."""
    done = 0
    while window := list(islice(pairs, _WINDOW)):
        sources, targets = [s for s, _ in window], [t for _, t in window]
        source_ids, target_ids = translator.aligner.pair_ids(sources, targets, done + 1)
        done += len(window)
        untagged = translator.tokenizer.tags and untagged_warning(source_ids, translator.tokenizer)
        if warn is not None and untagged:
            warn(untagged)
            warn = None
        scores = translator.score(sources, targets)
        nothing = [None] * len(window)
        window_ranks = _ranks(translator, sources, targets) if ranks else nothing
        links = nothing if align_by is None else translator.align(sources, targets, align_by)
        for line, ids, log_probabilities, own_ranks, alignment in zip(
            sources, target_ids, scores, window_ranks, links, strict=True
        ):
            yield ScoredPair(
                tuple(translator.tokenizer.pieces_target([*ids, END])),
                tuple(log_probabilities),
                None if own_ranks is None else tuple(own_ranks),
                alignment,
                line,
            )


def gold_lines(
    translator: Translator, corpus: Corpus, gold: TextSource | Path, format: str = "text"
) -> Iterator[str]:
    """
    Measure each layer's alignment error rate.

    Yields two lines for each layer, with and without the shift; the best line comes first.

    A layer is named as in ``--align-by``. All pairs are held in memory; gold sets are small.
    """
    pairs = list(corpus.pairs())
    links = [
        read_gold(line, f"{gold}, line {number}")
        for number, line in enumerate(read_lines(gold), start=1)
    ]
    if len(links) != len(pairs):
        raise TextError(
            f"there must be a line of gold links for each pair, but there are {len(pairs):,} pairs "
            f"and {gold} has {len(links):,} lines."
        )
    rated = translator.aligner.rate([s for s, _ in pairs], [t for _, t in pairs], links)
    for way, counts in rated.items():
        rates = {
            "error_rate": counts.error_rate,
            "precision": counts.precision,
            "recall": counts.recall,
        }
        if format == "jsonl":
            yield json.dumps({"align_by": str(way), **rates})
        else:
            shown = "  ".join(f"{name} {rate:.3f}" for name, rate in rates.items())
            yield f"{way!s:16} {shown}"


def _ranks(
    translator: Translator, sources: Sequence[str], targets: Sequence[str]
) -> list[list[int]]:
    """Compute the ranks of all tokens, in batches of similar length."""
    ids = list(zip(*translator.aligner.pair_ids(sources, targets), strict=True))
    results: list[list[int]] = [[] for _ in ids]
    for rows in by_length([max(map(len, pair)) + 1 for pair in ids], _BATCH_TOKENS):
        batch = translator.collator.batch(*zip(*(ids[row] for row in rows), strict=True))
        batch = batch.to(translator.model.device)
        size = translator.tokenizer.target_size
        places = (batch.source, batch.target_in, batch.target_out)
        for row, ranks in zip(rows, target_ranks(translator.model, *places, size), strict=True):
            results[row] = ranks
    return results
