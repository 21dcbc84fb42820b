"""
Detection of text with many subwords that are unknown to the tokenizer.

Many unknown subwords are nearly always a mistake. The text differs from the vocabulary in encoding,
script, tokenization or letter case, or byte-pair codes were not applied to it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice

from heedful.data.encoded.dataset import EncodedPairs
from heedful.text.corpus import Corpus
from heedful.tokenization.special_symbols import split_tag
from heedful.tokenization.tokenizer import UNKNOWN, Tokenizer

_MOST_IN_TRAINING = 0.01
_LEAST_IN_INPUT = 0.1
_LOOKED_AT = 10_000
_SHOWN = 5
WORD_KINDS = ("word", "word-list", "imported-spaces")
"""Kinds of tokenizers whose vocabulary consists of whole words."""
CUT_FROM_WORDS = (*WORD_KINDS, "codes", "imported-codes")
"""Kinds of tokenizers that split a line at its spaces first, so that a subword is in one word."""


def unknown_warning(pairs: EncodedPairs, tokenizer: Tokenizer, corpus: Corpus) -> str | None:
    """
    Warn if more than 1% of the subwords of the training text are unknown.

    Returns one sentence, or None if there is nothing to warn about.

    The text is read only if there is something to report.
    """
    shares = {
        side: share for side, share in pairs.unknown_share.items() if share > _MOST_IN_TRAINING
    }
    if not shares:
        return None
    texts = list(islice(corpus.pairs(), _LOOKED_AT))
    reports = []
    for side, share in shares.items():
        lines = [pair[side == "target"] for pair in texts]
        examples = _examples(unknown_parts(tokenizer, lines, side))
        reports.append(f"{share:.1%} of the {side} subwords{examples}")
    return (
        f"{' and '.join(reports)} are unknown; check the encoding, letter case and tokenization of "
        "the text, or choose a larger vocabulary."
    )


def input_warnings(
    texts: Sequence[str],
    ids: Sequence[Sequence[int]],
    tokenizer: Tokenizer,
    *,
    lines: Sequence[int] = (),
    least: float = _LEAST_IN_INPUT,
) -> list[str]:
    """
    List the warnings about source lines: unknown text, and missing language tags.

    Text counts as unknown if at least a tenth of the subwords of the input, or of one line, are
    unknown.

    `lines`: numbers of the lines; counted from 1 if empty. `least`: the minimum share of unknown
    subwords; with 0, a single unknown subword is enough.

    A model can only guess unknown subwords from their context, and one in ten is enough to cause an
    invented translation. With a vocabulary of words, many lines reach that share, so only the share
    of the whole input counts.
    """
    counts = [(row.count(UNKNOWN), len(row)) for row in ids]
    parts = [("the input", 0, len(counts))]
    if tokenizer.kind not in WORD_KINDS:
        numbers = lines or range(1, len(counts) + 1)
        parts += [(f"line {number} of the input", n, n + 1) for n, number in enumerate(numbers)]
    warnings = []
    for where, first, end in parts:
        unknown, total = map(sum, zip((0, 0), *counts[first:end], strict=True))
        if unknown and unknown >= least * total:
            examples = _examples(unknown_parts(tokenizer, texts[first:end], "source"))
            warnings.append(
                f"{unknown / total:.0%} of the subwords of {where}{examples} are unknown to this "
                "model; check that the input is in the source language and prepared like the "
                "training text."
            )
            break
    untagged = untagged_warning(ids, tokenizer)
    return [*warnings, untagged] if untagged else warnings


def untagged_warning(ids: Iterable[Sequence[int]], tokenizer: Tokenizer) -> str | None:
    """
    Warn if a line names no target language although the model has several.

    `ids`: the ids of source lines; empty for blank lines.
    """
    tags = tokenizer.models[0].tags
    numbers = set(tags.values())
    if len(tags) < 2 or all(row[0] in numbers for row in ids if row):
        return None
    names = ", ".join(list(tags)[:_SHOWN]) + (", …" if len(tags) > _SHOWN else "")
    return (
        f"Every line must begin with a language tag ({names}), but some do not; add the tags, or "
        "let heedful translate add them with --target-language."
    )


def unknown_parts(tokenizer: Tokenizer, lines: Iterable[str], side: str) -> list[str]:
    """List the unknown characters or words of a text."""
    encode: Callable[[Sequence[str]], list[list[int]]] = (
        tokenizer.encode_source if side == "source" else tokenizer.encode_target
    )
    if side == "source" and tokenizer.tags:
        lines = (split_tag(line)[1] for line in lines)
    kind = tokenizer.kind if side == "source" else tokenizer.target_kind
    words = kind in CUT_FROM_WORDS
    counts = Counter(chain.from_iterable(line.split() if words else line for line in lines))
    parts = sorted(counts, key=lambda part: (-counts[part], part))
    return [part for part, ids in zip(parts, encode(parts), strict=True) if UNKNOWN in ids]


def _examples(parts: Sequence[str]) -> str:
    """Format the first unknown characters or words, in parentheses."""
    shown = ", ".join(f"“{part[:30]}”" for part in parts[:_SHOWN])
    return f" ({shown}{', …' if len(parts) > _SHOWN else ''})" if parts else ""
