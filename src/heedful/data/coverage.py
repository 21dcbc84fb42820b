"""
Detection of text that the tokenizer mostly does not know.

Many unknown subwords are nearly always a mistake: text in another encoding or script, not tokenised
or lower-cased like the text that the subwords were made from, or codes that were never applied.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice

from heedful.data.encoded.dataset import EncodedPairs
from heedful.text.corpus import Corpus
from heedful.tokenization.special_symbols import split_tag
from heedful.tokenization.tokenizer import UNKNOWN, Tokenizer

_MOST_IN_TRAINING = 0.01
_MOST_IN_INPUT = 0.1
_LOOKED_AT = 10_000
_SHOWN = 5
_CUT_FROM_WORDS = ("word", "word-list", "codes")


def unknown_warning(pairs: EncodedPairs, tokenizer: Tokenizer, corpus: Corpus) -> str | None:
    """
    Warn if more than 1 % of the subwords of the training text are unknown.

    Returns one sentence, or None without a warning.

    The text is read only if there is something to report.
    """
    shares = {
        side: share for side, share in pairs.unknown_share.items() if share > _MOST_IN_TRAINING
    }
    if not shares:
        return None
    texts = list(islice(corpus.pairs(), _LOOKED_AT))
    told = []
    for side, share in shares.items():
        lines = [pair[side == "target"] for pair in texts]
        examples = _examples(unknown_parts(tokenizer, lines, side))
        told.append(f"{share:.1%} of the {side} subwords{examples}")
    return (
        f"{' and '.join(told)} are unknown; check that the text has the encoding, the letter case "
        "and the tokenisation that the tokenizer expects, or give it a larger vocabulary."
    )


def input_warning(
    texts: Sequence[str], ids: Iterable[Sequence[int]], tokenizer: Tokenizer
) -> str | None:
    """
    Warn if more than 10 % of the subwords of an input are unknown.

    Returns one sentence, or None without a warning.

    Unknown subwords cannot be translated, only guessed from their context.
    """
    numbers = list(chain.from_iterable(ids))
    unknown = numbers.count(UNKNOWN)
    if unknown <= _MOST_IN_INPUT * len(numbers):
        return None
    examples = _examples(unknown_parts(tokenizer, texts, "source"))
    return (
        f"{unknown / len(numbers):.0%} of the subwords of the input{examples} are unknown to this "
        "model; check that the input is in the source language, and tokenised and lower-cased as "
        "the training text was."
    )


def unknown_parts(tokenizer: Tokenizer, lines: Iterable[str], side: str) -> list[str]:
    """List the unknown characters or words of a text."""
    encode: Callable[[Sequence[str]], list[list[int]]] = (
        tokenizer.encode_source if side == "source" else tokenizer.encode_target
    )
    if side == "source" and tokenizer.tags:
        lines = (split_tag(line)[1] for line in lines)
    kind = tokenizer.kind if side == "source" else tokenizer.target_kind
    words = kind in _CUT_FROM_WORDS
    counts = Counter(chain.from_iterable(line.split() if words else line for line in lines))
    parts = sorted(counts, key=lambda part: (-counts[part], part))
    return [part for part, ids in zip(parts, encode(parts), strict=True) if UNKNOWN in ids]


def _examples(parts: Sequence[str]) -> str:
    """Format some unknown parts, in brackets."""
    shown = ", ".join(f"“{part[:30]}”" for part in parts[:_SHOWN])
    return f" ({shown}{', …' if len(parts) > _SHOWN else ''})" if parts else ""
