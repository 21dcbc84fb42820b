"""
What waits to be computed, and the batches that are made of it.

The batch that follows is made around the sentence whose request has waited longest since it was
last served, and filled with those nearest to it in length, from whatever requests; so a long text
does not keep a short one waiting, and padding is rare.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from heedful.search.observer import Snapshot
from heedful.serve.models import ServedModel
from heedful.translation.result import Translation


@dataclass(frozen=True)
class Search:
    """
    Say how sentences are translated; those with equal searches can share a batch.

    Attributes
    ----------
    beam : int, optional
        Open hypotheses; the model's when absent.
    length_penalty : str, optional
        The model's when absent.
    n_best : int, default 1
        Translations of each.
    probabilities, alignments, attention : bool, default False
        What is told beside the text.

    Notes
    -----
    Checked before it comes here.
    """

    beam: int | None = None
    length_penalty: str | None = None
    n_best: int = 1
    probabilities: bool = False
    alignments: bool = False
    attention: bool = False

    def keywords(self) -> dict[str, Any]:
        """
        Name what is asked of `TranslationEngine.translate`.

        Returns
        -------
        dict of str to object
            Without what is not asked for, which an engine may not have.

        Notes
        -----
        An engine without attention refuses the word even with a false value.
        """
        return {name: value for name, value in vars(self).items() if value}


@dataclass(eq=False)
class TranslationJob:
    """
    Hold the sentences of one request, and who waits for them.

    Attributes
    ----------
    model : ServedModel
        With what they are translated.
    search : Search
        How.
    texts : sequence of str
        The sentences.
    lengths : sequence of int
        Their subwords.
    done : asyncio.Future
        For all translations.
    each : callable, optional
        Told of each sentence that is done.
    observer : callable, optional
        Told of each step of a search.

    Notes
    -----
    `waiting` holds the sentences that no batch has taken yet and belongs to the queue;
    `translations` holds those that are done and belongs to the event loop.
    """

    model: ServedModel
    search: Search
    texts: Sequence[str]
    lengths: Sequence[int]
    done: "asyncio.Future[list[Translation]]"
    each: Callable[[int, Translation], None] | None = None
    observer: Callable[[int, Snapshot], None] | None = None
    waiting: dict[int, int] = field(init=False)  # of each its subwords
    translations: dict[int, Translation] = field(default_factory=dict, init=False)
    gone: bool = field(default=False, init=False)  # nobody waits any more

    def __post_init__(self) -> None:
        self.waiting = dict(enumerate(self.lengths))

    @property
    def count(self) -> int:
        """Number of sentences that no batch has taken yet."""
        return len(self.waiting)

    def alike(self, other: "TranslationJob") -> bool:
        """
        Tell whether sentences of both can be translated together.

        Parameters
        ----------
        other : TranslationJob
            Of another request.

        Returns
        -------
        bool
            True for the same model and an equal search.

        Notes
        -----
        A model that was opened again is another one.
        """
        return self.model is other.model and self.search == other.search


@dataclass(eq=False)
class FunctionJob:
    """
    Hold something else to compute, alone.

    Attributes
    ----------
    function : callable
        Without arguments.
    done : asyncio.Future
        For what it returns.

    Notes
    -----
    Such as looking at a sentence; it waits like one.
    """

    function: Callable[[], Any]
    done: "asyncio.Future[Any]"
    gone: bool = field(default=False, init=False)
    count: int = field(default=1, init=False)


class QueuedSentence(NamedTuple):
    """
    Name a sentence.

    Attributes
    ----------
    sentences : TranslationJob
        Whose it is.
    number : int
        Its number there.

    Notes
    -----
    A batch is a list of them.
    """

    sentences: TranslationJob
    number: int


class Queue:
    """
    Keep what waits, and choose what is computed next.

    Parameters
    ----------
    batch_tokens : int
        Source tokens of a batch, padding included.

    Notes
    -----
    Not safe for several threads: `Worker` sees to that.
    """

    def __init__(self, batch_tokens: int) -> None:
        self.batch_tokens = batch_tokens
        self.count = 0
        self._line: list[TranslationJob | FunctionJob] = []
        self._shortest_is_next = False

    def __bool__(self) -> bool:
        return bool(self._line)

    def put(self, job: TranslationJob | FunctionJob) -> None:
        """
        Let something wait behind all others.

        Parameters
        ----------
        job : TranslationJob or FunctionJob
            What came.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        Whether there is room is not asked here.
        """
        self._line.append(job)
        self.count += job.count

    def drop(self, job: TranslationJob | FunctionJob) -> None:
        """
        Take out what nobody waits for any more.

        Parameters
        ----------
        job : TranslationJob or FunctionJob
            What came before.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        What is being computed is no longer here.
        """
        job.gone = True
        if job in self._line:
            self._line.remove(job)
            self.count -= job.count

    def clear(self) -> list[TranslationJob | FunctionJob]:
        """
        Take out everything.

        Returns
        -------
        list of Sentences or Call
            What waited.

        Notes
        -----
        At the end of a server.
        """
        line, self._line, self.count = self._line, [], 0
        return line

    def is_enough(self) -> bool:
        """
        Tell whether there is a full batch.

        Returns
        -------
        bool
            True for a call, too: it needs no company.

        Notes
        -----
        Counts all sentences, though not all may go together.
        """
        tokens = 0
        for one in self._line:
            if isinstance(one, FunctionJob):
                return True
            tokens += sum(one.waiting.values())
            if tokens >= self.batch_tokens:
                return True
        return False

    def take(self) -> list[QueuedSentence] | FunctionJob:
        """
        Choose a batch; the request that it was made around goes to the end of the line.

        Returns
        -------
        list of Row, or Call
            Out of the queue now; empty if nothing waits.

        Notes
        -----
        Sentences of one model and equal searches, nearest in length to the first one's.
        """
        if not self._line:
            return []
        # Every second time the shortest goes first, so that many long ones cannot hold it up.
        turn = min(range(len(self._line)), key=lambda place: self._line[place].count)
        first = self._line.pop(turn if self._shortest_is_next else 0)
        self._shortest_is_next = not self._shortest_is_next
        if isinstance(first, FunctionJob):
            self.count -= 1
            return first
        others = [one for one in self._line if isinstance(one, TranslationJob) and one.alike(first)]
        middle, anchor = next(iter(first.waiting.items()))
        rows = [QueuedSentence(one, row) for one in (first, *others) for row in one.waiting]
        rows.sort(key=lambda row: (row != (first, middle), abs(row[0].waiting[row[1]] - anchor)))
        batch: list[QueuedSentence] = []
        widest = 1
        for one, row in rows:
            widest = max(widest, one.waiting[row])
            if batch and (len(batch) + 1) * widest > self.batch_tokens:
                break
            batch.append(QueuedSentence(one, row))
        for one, row in batch:
            del one.waiting[row]
        self.count -= len(batch)
        self._line = [one for one in (*self._line, first) if one.count]
        return batch
