"""Scores of given pairs by forced decoding, in constant memory; and alignment error by layer."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from heedful.alignment.links import read_gold
from heedful.data.coverage import untagged_warning
from heedful.data.length_batches import by_length
from heedful.errors import TextError
from heedful.search.scoring import target_ranks
from heedful.text.corpus import Corpus, read_lines
from heedful.text.file_formats import TextSource
from heedful.text.lines import json_line
from heedful.tokenization.tokenizer import END
from heedful.translation.result import WordAlignment
from heedful.translation.translate import alignment_entry
from heedful.translation.translator import Translator

_WINDOW = 2048
_BATCH_TOKENS = 2048


@dataclass(frozen=True)
class ScoredPair:
    """Log-probabilities of a given translation."""

    tokens: tuple[str, ...]
    """Subwords of the translation, the end symbol last."""
    log_probabilities: tuple[float, ...]
    """Natural logarithm of the probability of each."""
    ranks: tuple[int, ...] | None = None
    """Rank of each token in the model's distribution, if requested."""
    alignment: WordAlignment | None = None
    """The word alignment, if requested."""

    @property
    def log_probability(self) -> float:
        """Log-probability of the whole translation, the end symbol included."""
        return sum(self.log_probabilities)

    @property
    def mean(self) -> float:
        """Mean log-probability per token."""
        return self.log_probability / len(self.log_probabilities)


@dataclass(frozen=True)
class ScoreFormat:
    """What is computed for each pair and how it is formatted."""

    format: str = "text"
    """One number per line, or a JSON object with everything."""
    normalise: bool = False
    """Whether plain lines contain the mean per token instead of the sum."""
    ranks: bool = False
    """Whether JSON has the ranks of the tokens."""
    alignments: bool = False
    """Whether links are written; in plain lines after a tab."""
    align_by: str = ""
    """How alignments are extracted from attention."""

    def line(self, number: int, pair: ScoredPair) -> str:
        """
        Format one pair.

        `number`: of the pair, counted from 0.

        JSON always has the sum and the mean.
        """
        if self.format == "jsonl":
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
        score = f"{pair.mean if self.normalise else pair.log_probability:.6f}"
        return score if pair.alignment is None else f"{score}\t{pair.alignment}"


def score_lines(
    translator: Translator,
    corpus: Corpus,
    score_format: ScoreFormat | None = None,
    warn: Callable[[str], None] | None = None,
) -> Iterator[str]:
    """
    Score every pair of a corpus.

    `score_format`: what is written of each pair; the log-probability alone if None. `warn`: told
    once of lines without a language tag, if the model has several.

    Natural logarithms, the end symbol included, no length penalty.
    """
    score_format = score_format or ScoreFormat()
    pairs = corpus.pairs()
    number = 0
    while window := list(islice(pairs, _WINDOW)):
        sources, targets = [s for s, _ in window], [t for _, t in window]
        if warn is not None and translator.tokenizer.tags:
            ids, _ = translator.aligner.pair_ids(sources, targets)
            if text := untagged_warning(ids, translator.tokenizer):
                warn(text)
                warn = None
        for pair in score_pairs(translator, sources, targets, score_format):
            yield score_format.line(number, pair)
            number += 1


def score_pairs(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    score_format: ScoreFormat,
) -> list[ScoredPair]:
    """Score given translations; ranks and alignments each take another pass."""
    _, ids = translator.aligner.pair_ids(sources, targets)
    scores = translator.score(sources, targets)
    ranks = _ranks(translator, sources, targets) if score_format.ranks else [None] * len(ids)
    wanted = score_format.alignments
    links = (
        translator.align(sources, targets, score_format.align_by) if wanted else [None] * len(ids)
    )
    return [
        ScoredPair(
            tuple(translator.tokenizer.pieces_target([*row, END])),
            tuple(score),
            None if rank is None else tuple(rank),
            alignment,
        )
        for row, score, rank, alignment in zip(ids, scores, ranks, links, strict=True)
    ]


def gold_lines(
    translator: Translator, corpus: Corpus, gold: TextSource | Path, format: str = "text"
) -> Iterator[str]:
    """
    Measure each layer's alignment error rate.

    Yields one line for each layer, with and without the shift, best first.

    The name of a layer is what ``--align-by`` takes. All pairs are held in memory: gold sets are
    small.
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
    found: list[list[int]] = [[] for _ in ids]
    for rows in by_length([max(map(len, pair)) + 1 for pair in ids], _BATCH_TOKENS):
        batch = translator.collator.batch(*zip(*(ids[row] for row in rows), strict=True))
        batch = batch.to(translator.model.device)
        size = translator.tokenizer.target_size
        places = (batch.source, batch.target_in, batch.target_out)
        for row, ranks in zip(rows, target_ranks(translator.model, *places, size), strict=True):
            found[row] = ranks
    return found
