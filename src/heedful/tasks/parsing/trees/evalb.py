"""
EVALB's score of constituency trees, computed without the EVALB program.

Each side has one sentence per line. EVALB excludes a sentence from its totals if the words that
count differ (an error), or no word of the tested tree counts (a skip). This favors parsers that
fail on hard sentences; `heedful.tasks.parsing.trees.score` excludes no sentence.

The score equals the score of EVALB from January 2006, but there is no limit of 200 words and
brackets per sentence. Sentences with unbalanced brackets always get zeros. EVALB stops after a
number of errors; this module does not stop.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from heedful.tasks.parsing.trees.brackets import (
    Bracket,
    BracketedSentence,
    count_crossing,
    count_matches,
    count_tags,
    counted_items,
)
from heedful.tasks.parsing.trees.evalb_parameters import COLLINS, EvalbParameters

VALID, ERROR, SKIP = 0, 1, 2
"""The status of a sentence."""
NO_TAG = "XX"
"""The tag that parsers without tags write."""
# An opening bracket with its label, and with the word if it has no other content; or a closing
# bracket.
_TOKEN = re.compile(r"(?:\(([^\s()]*)(?:\s+([^\s()]*)\))?|(\)))\s*", re.ASCII)
_SPACE = " \t\n\v\f\r"
_QUOTES = ("'", '"', "/")


@dataclass(frozen=True)
class EvalbSentence:
    """EVALB's counts for a sentence."""

    length: int
    """Number of words in the gold tree, as `EvalbParameters.length` counts them."""
    status: int = VALID
    """`VALID`, `ERROR` or `SKIP`."""
    reason: str = ""
    """Reason for the status `ERROR`; empty for other statuses."""
    matched: int = 0
    """Number of brackets that both trees have."""
    gold: int = 0
    """Number of brackets in the gold tree."""
    test: int = 0
    """Number of brackets in the tested tree."""
    crossing: int = 0
    """Number of brackets in the tested tree that cross a gold bracket."""
    words: int = 0
    """Number of words that count."""
    tags: int = 0
    """Number of words with the gold tag."""

    @property
    def is_complete(self) -> bool:
        """Whether all brackets match."""
        return self.matched == self.gold == self.test


@dataclass(frozen=True)
class EvalbTotals:
    """EVALB's summary of some sentences; scores are in percent."""

    sentences: tuple[EvalbSentence, ...]
    """All sentences, including errors and skips."""

    @cached_property
    def valid(self) -> tuple[EvalbSentence, ...]:
        """The valid sentences, from which all scores are computed."""
        return tuple(s for s in self.sentences if s.status == VALID)

    def number(self, status: int) -> int:
        """Count the sentences with a status."""
        return sum(sentence.status == status for sentence in self.sentences)

    def total(self, count: str) -> int:
        """Sum a count over all valid sentences."""
        return sum(getattr(sentence, count) for sentence in self.valid)

    @property
    def recall(self) -> float:
        """Share of the gold brackets that are found."""
        return percent(self.total("matched"), self.total("gold"))

    @property
    def precision(self) -> float:
        """Share of the tested brackets that are correct."""
        return percent(self.total("matched"), self.total("test"))

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall; None if nothing matches."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else None

    @property
    def complete(self) -> float:
        """Share of the sentences whose brackets all match."""
        return percent(sum(s.is_complete for s in self.valid), len(self.valid))

    @property
    def crossing(self) -> float:
        """Mean number of crossing brackets per sentence."""
        return self.total("crossing") / len(self.valid) if self.valid else 0.0

    def crossing_at_most(self, number: int) -> float:
        """Compute the share of the sentences with at most this many crossing brackets."""
        return percent(sum(s.crossing <= number for s in self.valid), len(self.valid))

    @property
    def tagging(self) -> float:
        """Share of the words that have the gold tag."""
        return percent(self.total("tags"), self.total("words"))


@dataclass(frozen=True)
class EvalbResult:
    """EVALB's score of a file of trees."""

    sentences: tuple[EvalbSentence, ...]
    """The sentences in the order of the file."""
    parameters: EvalbParameters = COLLINS
    """The rules of the score."""
    tags_from_gold: bool = False
    """Whether the tested trees had no tags and got the tags of the gold trees."""

    @property
    def all(self) -> EvalbTotals:
        """Summary of all sentences."""
        return EvalbTotals(self.sentences)

    @property
    def short(self) -> EvalbTotals:
        """Summary of the sentences up to the length limit."""
        return EvalbTotals(tuple(s for s in self.sentences if s.length <= self.parameters.cutoff))

    @property
    def stop(self) -> int | None:
        """Number, from 1, of the sentence where EVALB would stop early; None if it would not."""
        errors = [n for n, s in enumerate(self.sentences, start=1) if s.status == ERROR]
        allowed = self.parameters.max_error + 1
        return errors[allowed] if len(errors) > allowed else None


def evalb(
    gold: Sequence[str], test: Sequence[str], parameters: EvalbParameters = COLLINS
) -> EvalbResult:
    """
    Score lines of trees as EVALB does.

    `gold`, `test`: one sentence per line; a line may have no tree or several trees.

    If all tags of the test side are XX, they are replaced by the tags of the gold side. With XX,
    punctuation would count, and every sentence with punctuation would be an error.
    """
    golds, tests = [read_line(line) for line in gold], [read_line(line) for line in test]
    lacks_tags = has_no_tags(
        sentence.tags for sentence in tests if isinstance(sentence, BracketedSentence)
    )
    if lacks_tags:
        tests = [_with_gold_tags(*pair) for pair in zip(golds, tests, strict=True)]
    pairs = zip(golds, tests, strict=True)
    return EvalbResult(
        tuple(evalb_sentence(*pair, parameters) for pair in pairs), parameters, lacks_tags
    )


def has_no_tags(tags: Iterable[Sequence[str]]) -> bool:
    """Return whether there are words and all words have the tag XX."""
    return {tag for sentence in tags for tag in sentence} == {NO_TAG}


def read_line(line: str) -> BracketedSentence | str:
    """
    Read a line as EVALB does; an empty line is a sentence without words.

    Returns an error message if brackets do not balance or contain words without tags.
    """
    tags: list[str] = []
    words: list[str] = []
    labels: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    still_open: list[int] = []
    line, end = line.strip(_SPACE), 0
    while end < len(line):
        token = _TOKEN.match(line, end)
        if token is None:
            return f"“{line[end : end + 20]}” stands outside a bracket or next to another word"
        label, word, closing = token.groups()
        if closing:
            if not still_open:
                return "a closing bracket has no opening bracket"
            ends[still_open.pop()] = len(words)
        elif word is None:
            still_open.append(len(labels))
            labels.append(label)
            starts.append(len(words))
            ends.append(0)
        else:
            tags.append(label)
            words.append(word)
        end = token.end()
    if still_open:
        return "a bracket is not closed"
    phrases = tuple(map(Bracket, labels, starts, ends))
    return BracketedSentence(tuple(tags), tuple(words), phrases)


def evalb_sentence(
    gold: BracketedSentence | str,
    test: BracketedSentence | str,
    parameters: EvalbParameters = COLLINS,
) -> EvalbSentence:
    """Score a sentence; a side that could not be read is given as its error message."""
    if isinstance(gold, str):
        return EvalbSentence(0, ERROR, f"gold: {gold}")
    nothing = EvalbSentence(parameters.length(gold.tags))
    if isinstance(test, str):
        return replace(nothing, status=ERROR, reason=f"test: {test}")
    counts, test_counts = (side.counted_words(parameters) for side in (gold, test))
    if not any(test_counts):
        return replace(nothing, status=SKIP)
    if sum(counts) != sum(test_counts):
        _keep_quotes((gold, counts), (test, test_counts), parameters)
    gold_words, test_words = (
        counted_items(gold.words, counts),
        counted_items(test.words, test_counts),
    )
    if len(gold_words) != len(test_words):
        sizes = (
            f"{len(gold_words)} words are counted in the gold tree, but {len(test_words)} in the "
            "predicted tree"
        )
        return replace(nothing, status=ERROR, reason=sizes)
    for gold_word, test_word in zip(gold_words, test_words, strict=True):
        if not parameters.same_word(gold_word, test_word):
            return replace(
                nothing, status=ERROR, reason=f"the words “{gold_word}” and “{test_word}”"
            )
    gold_brackets = gold.counted_brackets(counts, parameters)
    test_brackets = test.counted_brackets(test_counts, parameters)
    tags = counted_items(gold.tags, counts), counted_items(test.tags, test_counts)
    return replace(
        nothing,
        matched=count_matches(gold_brackets, test_brackets, parameters),
        gold=len(gold_brackets),
        test=len(test_brackets),
        crossing=count_crossing(gold_brackets, test_brackets),
        words=len(gold_words),
        tags=count_tags(*tags, parameters),
    )


def percent(part: int, total: int) -> float:
    """Compute a percentage; 0 if the total is 0."""
    return 100 * part / total if total else 0.0


def _keep_quotes(
    gold: tuple[BracketedSentence, list[int]],
    test: tuple[BracketedSentence, list[int]],
    parameters: EvalbParameters,
) -> None:
    """Let quotation marks count as words if only one side leaves them out because of their tags."""
    # This changes the counts of each side, which state how often each word counts. Two marks
    # correspond if equally many words before them count. EVALB may count a mark twice, and this
    # function does the same.
    golds, tests = (_quotes(*side, parameters) for side in (gold, test))
    for number, quote in enumerate(tests):
        here = quote.before  # EVALB compares positions before quotation marks are counted again
        for gold_number, gold_quote in enumerate(golds):
            if gold_quote.before != here or gold_quote.tag == quote.tag:
                continue
            gold_deleted, test_deleted = (
                tag in parameters.delete_labels for tag in (gold_quote.tag, quote.tag)
            )
            if gold_deleted and not test_deleted:
                _put_back(golds, gold_number, gold[1])
            elif test_deleted and not gold_deleted:
                _put_back(tests, number, test[1])


@dataclass
class _Quote:
    """A quotation mark or apostrophe."""

    word: int
    """Index of the word in the sentence."""
    tag: str
    before: int
    """Number of words before it that count."""


def _quotes(
    sentence: BracketedSentence, counts: Sequence[int], parameters: EvalbParameters
) -> list[_Quote]:
    """List the quotation marks of a sentence."""
    return [
        _Quote(place, tag, sum(counts[:place]))
        for place, (tag, word) in enumerate(zip(sentence.tags, sentence.words, strict=True))
        if tag in parameters.quote_labels and word in _QUOTES
    ]


def _put_back(quotes: list[_Quote], number: int, counts: list[int]) -> None:
    """Let a quotation mark count as a word; this shifts it and all later marks by one word."""
    counts[quotes[number].word] += 1
    for quote in quotes[number:]:
        quote.before += 1


def _with_gold_tags(
    gold: BracketedSentence | str, test: BracketedSentence | str
) -> BracketedSentence | str:
    """Return `test` with the gold tags if it has as many words as `gold` without traces."""
    if isinstance(gold, str) or isinstance(test, str):
        return test
    tags = tuple(tag for tag in gold.tags if tag != "-NONE-")
    return replace(test, tags=tags) if len(tags) == len(test.words) else test
