"""Constraints on the translation of each line, from text to tokens."""

from collections.abc import Callable, Sequence

from heedful.errors import ArgumentError, TextError
from heedful.search.hypothesis import Hypothesis
from heedful.search.phrases import LineConstraints, Phrases
from heedful.text.blanks import read_target
from heedful.tokenization.tokenizer import UNKNOWN, Tokenizer

Lists = Sequence[Sequence[str]]
Warn = Callable[[str], None]


def read_constraints(
    tokenizer: Tokenizer,
    lines: int,
    *,
    target_prefix: Sequence[str] | None,
    force_phrases: Lists | None,
    avoid_phrases: Lists | None,
    numbers: Sequence[int],
    warn: Warn | None,
) -> list[LineConstraints]:
    """
    Tokenize the user's constraints.

    `target_prefix`: the beginning of each translation; empty for none.
    `force_phrases`: for each line the phrases that its translation must contain. `avoid_phrases`:
    for each line the phrases that its translation must not contain. `numbers`: numbers of the
    lines, for messages.

    Spaces around a phrase are ignored. A phrase begins at a word boundary and is tokenized on its
    own.
    """
    beginnings = tokenizer.encode_target(list(map(read_target, target_prefix or [""] * lines)))
    wanted = [_cut(tokenizer, phrases) for phrases in force_phrases or [()] * lines]
    unwanted = [_cut(tokenizer, phrases) for phrases in avoid_phrases or [()] * lines]
    line_constraints = []
    for number, prefix in enumerate(beginnings):
        for ids in (prefix, *wanted[number]):
            if UNKNOWN in ids and warn is not None:
                warn(
                    f"line {numbers[number]} requests “{tokenizer.decode(ids)}”, with ⁇ for text "
                    "that the tokenizer does not know; the translation will have ⁇, too."
                )
        line_constraints.append(LineConstraints(tuple(prefix), wanted[number], unwanted[number]))
    return line_constraints


def by_line(
    name: str, phrases: Sequence[str | Sequence[str]] | None, is_single: bool
) -> list[Sequence[str]] | None:
    """List the phrases of each line; the phrases of a single text need no nesting."""
    if phrases is None:
        return None
    if is_single and all(isinstance(phrase, str) for phrase in phrases):
        return [[phrase for phrase in phrases if isinstance(phrase, str)]]
    lists: list[Sequence[str]] = [entry for entry in phrases if not isinstance(entry, str)]
    if len(lists) < len(phrases):
        raise ArgumentError(
            f"`{name}` must be a list of lists of strings, one for each line, but one of its "
            "entries is a string."
        )
    return lists


def check_prefixes(
    line_constraints: Sequence[LineConstraints], limits: Sequence[int], lines: Sequence[int]
) -> None:
    """
    Refuse prefixes that are longer than a translation may be.

    Raises `TextError` for the first such line, because a truncated prefix would go unnoticed.
    """
    for constraint, limit, line in zip(line_constraints, limits, lines, strict=True):
        if len(constraint.prefix) > limit:
            raise TextError(
                f"the prefix of line {line} must have at most {limit:,} subwords, the length "
                f"limit, but has {len(constraint.prefix):,}; shorten it, or raise max-length."
            )


def warn_missing(
    tokenizer: Tokenizer, line_constraints: LineConstraints, best: Hypothesis, line: int, warn: Warn
) -> None:
    """Report the phrases that a translation lacks."""
    missing = Phrases(line_constraints.phrases).missing(best.tokens)
    if missing:
        names = " and ".join(f"“{tokenizer.decode(phrase)}”" for phrase in missing)
        warn(
            f"line {line} has no translation with {names} that ends within its length limit; the "
            "returned translation lacks this text and is cut at the limit. Raise max-length, or "
            "use a wider beam."
        )


def _cut(tokenizer: Tokenizer, phrases: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Tokenize phrases; skip empty ones."""
    ids = tokenizer.encode_phrases(list(map(read_target, phrases)))
    return tuple(tuple(phrase) for phrase in ids if phrase)
