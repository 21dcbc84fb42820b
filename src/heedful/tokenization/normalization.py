"""
Normalization of text before a trained model splits it: `data.normalization`.

SentencePiece uses a table in the model's file, so every program that reads the file normalizes text
in the same way. SentencePiece includes tables for NFKC with additions for translation (blanks,
control characters, Japanese tildes), with or without case folding. It has no table for NFC, so one
is generated here: a letter and its accents become one character. If an accent that does not compose
comes before an accent that does, the table changes neither. No language's usual spelling contains
such sequences.
"""

import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sentencepiece

IDENTITY, NFC = "identity", "nfc"


def normalizer(rule: str) -> Callable[[str], str] | None:
    """Return a function that normalizes a line by this rule; None for no change."""
    if rule == IDENTITY:
        return None
    if rule == NFC:
        return partial(unicodedata.normalize, "NFC")
    rewriter = sentencepiece.SentencePieceNormalizer(
        rule_name=rule,
        add_dummy_prefix=False,
        escape_whitespaces=False,
        remove_extra_whitespaces=False,
    )
    return lambda line: str(rewriter.normalize(line))


@contextmanager
def training_options(rule: str) -> Iterator[dict[str, Any]]:
    """Yield the training options that make SentencePiece normalize by this rule."""
    if rule != NFC:
        yield {"normalization_rule_name": rule}
        return
    with TemporaryDirectory(prefix="heedful-") as folder:
        table = Path(folder, "nfc.tsv")
        rows = (f"{_numbers(text)}\t{_numbers(composed)}\n" for text, composed in _compositions())
        table.write_text("".join(rows), encoding="ascii")
        yield {"normalization_rule_tsv": str(table), "normalization_rule_name": NFC}


def _compositions() -> list[tuple[str, str]]:
    """List the sequences that NFC composes, with the composed text."""
    rows: dict[str, str] = {}
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        parts = unicodedata.normalize("NFD", character)
        if parts == character:
            continue
        composed = unicodedata.normalize("NFC", character)
        # every order of the marks, with the first marks composed or not
        spellings = [character]
        for marks in permutations(parts[1:]):
            spelled = parts[0] + "".join(marks)
            ends = range(len(spelled))
            spellings += [unicodedata.normalize("NFC", spelled[:n]) + spelled[n:] for n in ends]
        for text in spellings:
            if text != composed == unicodedata.normalize("NFC", text):
                rows[text] = composed
    return sorted(rows.items())


def _numbers(text: str) -> str:
    """Write the code points of a text as in SentencePiece's tables."""
    return " ".join(f"{ord(character):X}" for character in text)
