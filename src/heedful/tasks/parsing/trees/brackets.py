"""
Brackets of a sentence, counted and compared by EVALB's rules.

::

    (S (NP-SBJ (NN dogs)) (VP (VBP sleep)) (. .))
    tags  NN VBP .       phrases  S 0 3, NP-SBJ 0 1, VP 1 2
    counted              S 0 2, NP 0 1, VP 1 2           the period is not counted

A span consists of the index of the first word and the index after the last word.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from heedful.tasks.parsing.trees.evalb_parameters import EvalbParameters
from heedful.tasks.parsing.trees.tree import Tree


class Bracket(NamedTuple):
    """A phrase: its label and its span."""

    label: str
    start: int
    end: int


@dataclass(frozen=True)
class BracketedSentence:
    """A sentence with its phrases, which need not form one tree."""

    tags: tuple[str, ...]
    """The part of speech of each word."""
    words: tuple[str, ...]
    """The words of the sentence, including words that do not count."""
    phrases: tuple[Bracket, ...]
    """The phrases in the order in which they open."""

    @classmethod
    def of(cls, tree: Tree) -> "BracketedSentence":
        """List the brackets of a tree."""
        return cls(tree.tags, tree.words, tuple(Bracket(*phrase) for phrase in tree.phrases()))

    def counted_words(self, parameters: EvalbParameters) -> list[int]:
        """Return 1 for each word that counts, and 0 for all other words."""
        return [
            int(tag not in parameters.delete_labels and word not in parameters.delete_words)
            for tag, word in zip(self.tags, self.words, strict=True)
        ]

    def counted_brackets(self, counts: Sequence[int], parameters: EvalbParameters) -> list[Bracket]:
        """
        List the brackets that count, with bare labels.

        Their spans consist of indices among the words that count.

        `counts`: how often each word counts.
        """
        place = list(accumulate(counts, initial=0))  # index of each word among words that count
        brackets = (Bracket(bare(b.label), place[b.start], place[b.end]) for b in self.phrases)
        return [b for b in brackets if b.start < b.end and not parameters.deletes_phrase(b.label)]


def bare(label: str) -> str:
    """
    Cut a label at the first hyphen or equals sign, even if the label begins with it, as EVALB does.

    >>> bare("NP-SBJ-1"), bare("S=2"), bare("-LRB-")
    ('NP', 'S', '')
    """
    return re.split("[-=]", label, maxsplit=1)[0]


def counted_items(values: Sequence[str], counts: Sequence[int]) -> list[str]:
    """Repeat the value of each word as often as the word counts."""
    return [value for value, times in zip(values, counts, strict=True) for _ in range(times)]


def count_matches(
    gold: Sequence[Bracket], test: Sequence[Bracket], parameters: EvalbParameters
) -> int:
    """Count the matching brackets; each matches at most one bracket of the other side."""
    matched = 0
    free = list(test)
    for bracket in gold:
        for place, candidate in enumerate(free):
            if bracket[1:] == candidate[1:] and (
                not parameters.labeled or parameters.same_label(bracket.label, candidate.label)
            ):
                matched += 1
                del free[place]
                break
    return matched


def count_crossing(gold: Sequence[Bracket], test: Sequence[Bracket]) -> int:
    """Count the test brackets that overlap a gold bracket without one containing the other."""
    return sum(
        any(
            gold_bracket.start < test_bracket.start < gold_bracket.end < test_bracket.end
            or test_bracket.start < gold_bracket.start < test_bracket.end < gold_bracket.end
            for gold_bracket in gold
        )
        for test_bracket in test
    )


def count_tags(gold: Sequence[str], test: Sequence[str], parameters: EvalbParameters) -> int:
    """Count the tags that are equal on both sides."""
    return sum(parameters.same_label(*both) for both in zip(gold, test, strict=True))
