"""
The worker thread that translates for all clients in batches.

::

    requests ─ sentences wait ─ a batch of one model, one search, similar lengths ─ answers

A batch waits briefly for more sentences, including those of clients that were just answered.
Otherwise, the clients could split into two groups whose batches alternate forever. Sentences of
disconnected clients are dropped before they are translated.

The event loop submits jobs (`Worker.translate`), and the thread runs them. The lock `_shared`
protects their common state.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from heedful.search.observer import SearchObserver, Snapshot
from heedful.serve.batch_queue import FunctionJob, Queue, QueuedSentence, Search, TranslationJob
from heedful.serve.limits import HttpError
from heedful.serve.models import ServedModel
from heedful.translation.result import Translation

_log = logging.getLogger("heedful.serve")
_Result = TypeVar("_Result")

# Waiting for more sentences may take a tenth of the time of the last batch, or `gather_seconds` if
# that is longer. A batch begins earlier if no sentence arrives for a hundredth of that time. A slow
# model gains more from larger batches, and users hardly notice a delay of a tenth.
_WAITING_SHARE, _QUIET_SHARE = 0.1, 0.01
# Texts with more characters are split, tokenized and joined in a thread, because this work
# would block the event loop.
_AT_ONCE = 2000


async def aside(size: int, work: Callable[..., _Result], *arguments: object) -> _Result:
    """Call a function directly, or in a thread if `size`, in characters, is large."""
    return work(*arguments) if size <= _AT_ONCE else await asyncio.to_thread(work, *arguments)


class Worker:
    """
    The worker thread, which batches and translates the sentences of all requests.

    `batch_tokens`: maximum number of source tokens in a batch, including padding. `on_batch`:
    called after each batch with its number of sentences, number of tokens and time in seconds.

    Call `start` in an event loop; `stop` lets the running batch finish.
    """

    def __init__(
        self,
        *,
        queue: int = 2000,
        batch_tokens: int = 2048,
        gather_seconds: float = 0.005,
        on_batch: Callable[[int, int, float], None] | None = None,
    ) -> None:
        self.queue_limit, self.gather_seconds = queue, gather_seconds
        self._on_batch = on_batch
        self._shared = threading.Condition()
        self._queue = Queue(batch_tokens)
        self._arrived = 0.0
        self._closed = False
        self._last_seconds, self._ended = 0.0, 0.0
        self._rate = 10.0  # sentences per second, a moving average
        self._thread = threading.Thread(target=self._work, name="translating", daemon=True)

    def start(self) -> None:
        """Start the thread; call it in the event loop that will submit jobs."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        """Accept no more jobs, refuse the waiting jobs, and stop after the running batch."""
        with self._shared:
            self._closed = True
            left = self._queue.clear()
            self._shared.notify()
        for job in left:
            _resolve(job.done, HttpError(503, "the server is stopping.", 1))

    def join(self, seconds: float = 10.0) -> None:
        """Wait for the running batch to end."""
        # Call after `stop`: a process that ends while a thread computes may crash.
        if self._thread.is_alive():
            self._thread.join(seconds)

    @property
    def waiting(self) -> int:
        """Number of waiting sentences."""
        return self._queue.count

    async def translate(
        self,
        model: ServedModel,
        texts: Sequence[str],
        search: Search,
        *,
        on_sentence: Callable[[int, Translation], None] | None = None,
        observer: Callable[[int, Snapshot], None] | None = None,
    ) -> list[Translation]:
        """
        Translate some sentences.

        Raises `HttpError` if too many sentences wait. Canceling removes the sentences that are not
        in a batch yet.
        """
        if not texts:
            return []
        done: asyncio.Future[list[Translation]] = self._loop.create_future()
        lengths = await aside(sum(map(len, texts)), model.lengths, texts)
        job = TranslationJob(model, search, texts, lengths, done, on_sentence, observer)
        return await self._enqueue(job, done)

    async def call(self, function: Callable[[], _Result]) -> _Result:
        """Run a function in the worker thread, queued like a sentence."""
        done: asyncio.Future[_Result] = self._loop.create_future()
        return await self._enqueue(FunctionJob(function, done), done)

    def _put(self, job: TranslationJob | FunctionJob) -> None:
        """Queue a job if there is room; an empty queue always has room."""
        with self._shared:
            if self._closed:
                raise HttpError(503, "the server is stopping.", 1)
            waiting = self._queue.count
            if waiting and waiting + job.count > self.queue_limit:
                seconds = min(60, 1 + int(waiting / self._rate))
                raise HttpError(
                    429,
                    f"at most {self.queue_limit:,} sentences can wait; {waiting:,} are waiting and "
                    f"this request has {job.count:,}; try again in {seconds} s.",
                    seconds,
                )
            self._queue.put(job)
            self._arrived = time.monotonic()
            self._shared.notify()

    async def _enqueue(
        self, job: TranslationJob | FunctionJob, done: "asyncio.Future[_Result]"
    ) -> _Result:
        """Queue a job and wait for its result; canceling removes the job."""
        self._put(job)
        try:
            return await done
        except asyncio.CancelledError:
            with self._shared:
                self._queue.drop(job)
            raise

    def _work(self) -> None:
        """Translate batch after batch until stopped."""
        while True:
            with self._shared:
                while not self._queue and not self._closed:
                    self._shared.wait()
                if self._closed:
                    return
                self._gather()
                batch = self._queue.take()
            if isinstance(batch, FunctionJob):
                self._compute(batch)
            elif batch:
                self._translate(batch)

    def _gather(self) -> None:
        """Wait a moment for further sentences, as long as they keep coming."""
        if not self.gather_seconds:
            return
        most, pause = _WAITING_SHARE * self._last_seconds, self.gather_seconds
        latest = time.monotonic() + max(pause, most)
        if self._ended + most > time.monotonic():  # clients that got answers may soon send more
            pause = max(pause, _QUIET_SHARE * self._last_seconds)
        answered = self._ended + min(pause, most)
        while not self._closed and not self._queue.is_enough():
            left = min(latest, max(self._arrived + pause, answered)) - time.monotonic()
            if left <= 0:
                return
            self._shared.wait(left)

    def _compute(self, call: FunctionJob) -> None:
        """Run a function job."""
        if call.gone:
            return
        try:
            result: Any = call.function()
        except Exception as error:
            result = error
        self._post(_resolve, call.done, result)

    def _translate(self, batch: list[QueuedSentence]) -> None:
        """Translate a batch; if that fails, translate the sentences of each request separately."""
        batch = [row for row in batch if not row.sentences.gone]
        if not batch:
            return
        begun = time.monotonic()
        try:
            translations = self._search(batch)
        except Exception as error:
            apart: dict[TranslationJob, list[QueuedSentence]] = {}
            for row in batch:
                apart.setdefault(row.sentences, []).append(row)
            if len(apart) == 1:
                self._post(_resolve, batch[0].sentences.done, error)
                return
            for part in apart.values():
                self._translate(part)
            return
        seconds = time.monotonic() - begun
        self._last_seconds = seconds
        self._rate += 0.2 * (len(batch) / max(seconds, 1e-6) - self._rate)
        if self._on_batch is not None:
            tokens = sum(job.lengths[row] for job, row in batch)
            self._on_batch(len(batch), tokens, seconds)
        # Update metrics before replying, so a client that reads /metrics next sees them.
        self._post(_deliver, batch, translations)
        self._ended = time.monotonic()

    def _search(self, batch: list[QueuedSentence]) -> list[Translation]:
        """Call the engine."""
        first = batch[0].sentences
        search, options = first.search, first.search.options
        observe: SearchObserver | None = None
        if options.beam is None:
            options = replace(options, beam=first.model.facts["beam"])
        if any(job.observer for job, _ in batch):

            def observer(snapshot: Snapshot) -> None:
                job, row = batch[snapshot.sentence]
                if job.observer is not None:
                    job.observer(row, snapshot)

            observe = observer
        translator: Any = first.model.translator
        if any(search.languages):
            translator = translator.between(*search.languages)
        translations: list[Translation] = translator.translate(
            [job.texts[row] for job, row in batch],
            options,
            probabilities=search.probabilities,
            attention=search.attention,
            alignments=search.alignments,
            glossary=search.glossary,
            protected=search.protected,
            observer=observe,
        )
        return translations

    def _post(self, function: Callable[..., None], *arguments: object) -> None:
        """Call a function in the event loop, unless the loop has ended."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)


def _deliver(batch: list[QueuedSentence], translations: list[Translation]) -> None:
    """Distribute the results of a batch; requests that are complete are answered."""
    for (job, row), translation in zip(batch, translations, strict=True):
        if job.gone:
            continue
        job.translations[row] = translation
        if job.on_sentence is not None:
            job.on_sentence(row, translation)
        if len(job.translations) == len(job.texts):
            _resolve(job.done, [job.translations[row] for row in range(len(job.texts))])


def _resolve(done: "asyncio.Future[Any]", result: object) -> None:
    """Set the result of a future, unless it is already done."""
    if done.done():
        return
    if isinstance(result, BaseException):
        done.set_exception(result)
    else:
        done.set_result(result)
