"""
The queue of jobs, and the choice of batches from it.

The first sentence of a batch comes alternately from the request that was served least recently and
from the request with the fewest waiting sentences. The batch is then filled with sentences of any
request with the same model and settings, closest in length to the first sentence. Therefore, short
texts need not wait for long texts, and batches have little padding.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from heedful.search.observer import Snapshot
from heedful.search.settings import SearchOptions
from heedful.serve.models import ServedModel
from heedful.translation.result import Translation


@dataclass(frozen=True)
class Search:
    """Search settings of a job; jobs of one model with equal settings can share a batch."""

    options: SearchOptions = field(default_factory=SearchOptions)
    """Options of the search; if the beam is None, the model's default is used."""
    probabilities: bool = False
    alignments: bool = False
    attention: bool = False
    """Whether probabilities, alignments and attention are returned in addition to the text."""
    glossary: Mapping[str, str] | None = None
    protected: tuple[str, ...] = ()
    """The terms with their translations, and the strings that stay unchanged."""
    languages: tuple[str, str] = ("", "")
    """Source and target language of a model with language tokens; otherwise empty."""


@dataclass(eq=False)
class TranslationJob:
    """
    The sentences of one request, and the future of their translations.

    `waiting` contains the sentences that are not in a batch yet; only the queue changes it.
    `translations` contains the finished sentences; only the event loop changes it.
    """

    model: ServedModel
    search: Search
    texts: Sequence[str]
    lengths: Sequence[int]
    """Number of subwords of each sentence."""
    done: "asyncio.Future[list[Translation]]"
    on_sentence: Callable[[int, Translation], None] | None = None
    """Called with the index and the translation of each finished sentence."""
    observer: Callable[[int, Snapshot], None] | None = None
    """Called with the index of a sentence and each step of its search."""
    waiting: dict[int, int] = field(init=False)  # index: number of subwords
    translations: dict[int, Translation] = field(default_factory=dict, init=False)
    gone: bool = field(default=False, init=False)  # whether the client has disconnected

    def __post_init__(self) -> None:
        self.waiting = dict(enumerate(self.lengths))

    @property
    def count(self) -> int:
        """Number of sentences that are not in a batch yet."""
        return len(self.waiting)

    def alike(self, job: "TranslationJob") -> bool:
        """Return whether two jobs can share a batch; a reloaded model counts as a new model."""
        return self.model is job.model and self.search == job.search


@dataclass(eq=False)
class FunctionJob:
    """A function to run in the worker thread between batches, queued like a sentence."""

    function: Callable[[], Any]
    done: "asyncio.Future[Any]"
    """The future of the function's result."""
    gone: bool = field(default=False, init=False)
    count: int = field(default=1, init=False)


class QueuedSentence(NamedTuple):
    """A sentence in the queue."""

    sentences: TranslationJob
    number: int


class Queue:
    """
    The queue of jobs, with the choice of the next batch.

    `batch_tokens`: maximum number of source tokens in a batch, including padding.

    Not thread-safe: `Worker` holds the lock.
    """

    def __init__(self, batch_tokens: int) -> None:
        self.batch_tokens = batch_tokens
        self.count = 0
        self._line: list[TranslationJob | FunctionJob] = []
        self._shortest_is_next = False

    def __bool__(self) -> bool:
        return bool(self._line)

    def put(self, job: TranslationJob | FunctionJob) -> None:
        """Append a job; the caller checks the limit of the queue."""
        self._line.append(job)
        self.count += job.count

    def drop(self, job: TranslationJob | FunctionJob) -> None:
        """Remove a canceled job; its sentences in a running batch are not affected."""
        job.gone = True
        if job in self._line:
            self._line.remove(job)
            self.count -= job.count

    def clear(self) -> list[TranslationJob | FunctionJob]:
        """Remove and return all jobs when the server stops."""
        line, self._line, self.count = self._line, [], 0
        return line

    def is_enough(self) -> bool:
        """Return whether the waiting jobs might fill a batch, ignoring models and settings."""
        tokens = 0
        for job in self._line:
            if isinstance(job, FunctionJob):
                return True
            tokens += sum(job.waiting.values())
            if tokens >= self.batch_tokens:
                return True
        return False

    def take(self) -> list[QueuedSentence] | FunctionJob:
        """Choose a batch and remove it from the queue; the batch is empty if nothing waits."""
        # The batch has sentences of one model with equal search settings, closest in length to the
        # first sentence. The request of the first sentence moves to the end of the queue.
        if not self._line:
            return []
        # 1. The first request: alternately the one that was served least recently and the one with
        # the fewest sentences, so that many long requests cannot delay a short one.
        turn = min(range(len(self._line)), key=lambda place: self._line[place].count)
        first = self._line.pop(turn if self._shortest_is_next else 0)
        self._shortest_is_next = not self._shortest_is_next
        if isinstance(first, FunctionJob):
            self.count -= 1
            return first
        # 2. All sentences that may share a batch with the first one, closest in length first.
        others = [job for job in self._line if isinstance(job, TranslationJob) and job.alike(first)]
        middle, anchor = next(iter(first.waiting.items()))
        rows = [QueuedSentence(job, row) for job in (first, *others) for row in job.waiting]
        rows.sort(key=lambda row: (row != (first, middle), abs(row[0].waiting[row[1]] - anchor)))
        # 3. As many of these sentences as fit, including padding.
        batch: list[QueuedSentence] = []
        widest = 1
        for job, row in rows:
            widest = max(widest, job.waiting[row])
            if batch and (len(batch) + 1) * widest > self.batch_tokens:
                break
            batch.append(QueuedSentence(job, row))
        for job, row in batch:
            del job.waiting[row]
        self.count -= len(batch)
        self._line = [job for job in (*self._line, first) if job.count]
        return batch
