"""Held-out pairs from files, for validation and for finding repetitions in the training text."""

from heedful.arguments import Files
from heedful.data.overlap.leaks import HeldOutPairs
from heedful.errors import TextError
from heedful.preparation.training_data import as_list
from heedful.text.corpus import Corpus, expand


def held_out_files(source: Files | None, target: Files | None) -> Corpus | None:
    """
    Find the validation files; None if there are none.

    Raises `TextError` if one side is missing.
    """
    if source is None and target is None:
        return None
    if source is None or target is None:
        raise TextError(
            "--valid-source and --valid-target must be given together, but one is missing."
        )
    return Corpus(expand(as_list(source)), expand(as_list(target)))


def read_held_out(corpus: Corpus) -> tuple[HeldOutPairs, str]:
    """
    Read the validation pairs.

    Returns the pairs, and a note on skipped rows and on pairs with an empty side, which are left
    out. Raises `TextError` if no pair is left.
    """
    pairs = list(corpus.pairs())
    filled = [(line, s, t) for line, (s, t) in enumerate(pairs, 1) if s.strip() and t.strip()]
    if not filled:
        raise TextError(
            "the validation files must have a pair with text on both sides, but have none; give "
            "other files."
        )
    note = "; ".join([note_on_empty(len(pairs) - len(filled)), *corpus.skipped.notes()])
    lines, sources, targets = map(list, zip(*filled, strict=True))
    return HeldOutPairs(sources, targets, lines), note


def note_on_empty(count: int) -> str:
    """State how many pairs are left out because a side is empty; return “” if there are none."""
    return f", {count:,} with an empty side left out" if count else ""
