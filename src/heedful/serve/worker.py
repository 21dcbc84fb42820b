"""
One thread that translates what all clients ask, in batches.

::

    requests ─ sentences wait ─ a batch of one model, one search, similar lengths ─ answers

A sentence that comes alone waits a few milliseconds for company. The batch that follows is made
around the sentence whose request has waited longest since it was last served, and filled with those
nearest to it in length, from whatever requests; so a long text does not keep a short one waiting,
and padding is rare. Sentences of clients that have gone are dropped before they are translated.

asyncio asks (`Worker.translate`), the thread computes; nothing but `_shared` is touched by both.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from heedful.search.watch import Snapshot
from heedful.serve.limits import Refused
from heedful.serve.models import Model
from heedful.workflow.translation import Translation

_log = logging.getLogger("heedful.serve")
_Result = TypeVar("_Result")

# Of the time that the last batch took, waiting for company may cost this much.
_WAITING_SHARE = 0.1


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
class _Asked:
    """The sentences of one request, and who waits for them."""

    model: Model
    search: Search
    texts: Sequence[str]
    lengths: Sequence[int]
    done: "asyncio.Future[list[Translation]]"
    each: Callable[[int, Translation], None] | None
    watch: Callable[[int, Snapshot], None] | None
    waiting: dict[int, int] = field(default_factory=dict)  # of each sentence its subwords
    found: dict[int, Translation] = field(default_factory=dict)
    gone: bool = False

    def alike(self, other: "_Asked") -> bool:
        """Whether sentences of both can be translated together."""
        return self.model is other.model and self.search == other.search


@dataclass(eq=False)
class _Call:
    """Something else to compute, alone."""

    function: Callable[[], Any]
    done: "asyncio.Future[Any]"
    gone: bool = False


_Row = tuple[_Asked, int]


class Worker:
    """
    Gather sentences into batches and translate them in a thread.

    Parameters
    ----------
    queue : int, default 2000
        Sentences that may wait.
    batch_tokens : int, default 2048
        Source tokens of a batch, padding included.
    gather_seconds : float, default 0.005
        How long a batch waits for another request to come after the last one did.
    tell : callable, optional
        Told after each batch how many sentences and tokens it had and how many seconds it took.

    Notes
    -----
    Started by `start`, in an event loop; ended by `stop`, which lets the batch that runs end.
    """

    def __init__(
        self,
        *,
        queue: int = 2000,
        batch_tokens: int = 2048,
        gather_seconds: float = 0.005,
        tell: Callable[[int, int, float], None] | None = None,
    ) -> None:
        self.queue, self.batch_tokens, self.gather_seconds = queue, batch_tokens, gather_seconds
        self._tell = tell
        self._shared = threading.Condition()
        self._asked: list[_Asked | _Call] = []
        self._waiting = 0
        self._arrived = 0.0
        self._closed = False
        self._last_seconds = 0.0
        self._rate = 10.0  # sentences a second, as last seen
        self._thread = threading.Thread(target=self._work, name="translating", daemon=True)

    def start(self) -> None:
        """
        Begin to work.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        Called in the event loop that will ask.
        """
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        """
        Take no more work and end after the running batch.

        Returns
        -------
        None
            At once; the thread ends by itself.

        Notes
        -----
        Whoever still waits is told that the server stops.
        """
        with self._shared:
            self._closed = True
            left, self._asked, self._waiting = self._asked, [], 0
            self._shared.notify()
        for asked in left:
            _settle(asked.done, Refused(503, "the server is being stopped.", 1))

    def join(self, seconds: float = 10.0) -> None:
        """
        Wait for the batch that runs.

        Parameters
        ----------
        seconds : float, default 10
            At most.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        After `stop`: a process that ends while a thread computes may crash.
        """
        if self._thread.is_alive():
            self._thread.join(seconds)

    @property
    def waiting(self) -> int:
        """Number of sentences that wait."""
        return self._waiting

    async def translate(
        self,
        model: Model,
        texts: Sequence[str],
        search: Search,
        *,
        each: Callable[[int, Translation], None] | None = None,
        watch: Callable[[int, Snapshot], None] | None = None,
    ) -> list[Translation]:
        """
        Translate some sentences.

        Parameters
        ----------
        model : Model
            With what.
        texts : sequence of str
            With their tags, none of them empty.
        search : Search
            How.
        each : callable, optional
            Called in the event loop with the index of each sentence that is done.
        watch : callable, optional
            Called in the translating thread after each step of each sentence's search.

        Returns
        -------
        list of Translation
            One a sentence, in order.

        Notes
        -----
        Raises `Refused` if too many wait. Cancelled, it drops what has not begun.
        """
        if not texts:
            return []
        lengths = model.lengths(texts)
        waiting = dict(enumerate(lengths))
        done = self._loop.create_future()
        asked = _Asked(model, search, texts, lengths, done, each, watch, waiting)
        self._put(asked, len(texts))
        return await self._wait(asked)

    async def call(self, function: Callable[[], _Result]) -> _Result:
        """
        Compute something else in the thread that translates.

        Parameters
        ----------
        function : callable
            Without arguments.

        Returns
        -------
        object
            What it returns.

        Notes
        -----
        Waits for its turn like a sentence.
        """
        asked = _Call(function, self._loop.create_future())
        self._put(asked, 1)
        result: _Result = await self._wait(asked)
        return result

    def _put(self, asked: _Asked | _Call, count: int) -> None:
        """Let sentences wait, if there is room; a request that finds no other has room."""
        with self._shared:
            if self._closed:
                raise Refused(503, "the server is being stopped.", 1)
            if self._waiting and self._waiting + count > self.queue:
                seconds = min(60, 1 + int(self._waiting / self._rate))
                raise Refused(
                    429,
                    f"at most {self.queue:,} sentences can wait, but {self._waiting:,} do and "
                    f"{count:,} more came; ask again in {seconds} s.",
                    seconds,
                )
            self._waiting += count
            self._arrived = time.monotonic()
            self._asked.append(asked)
            self._shared.notify()

    async def _wait(self, asked: _Asked | _Call) -> Any:
        """Wait for the answer; a client that goes takes its sentences along."""
        try:
            return await asked.done
        except asyncio.CancelledError:
            with self._shared:
                asked.gone = True
                if asked in self._asked:
                    self._asked.remove(asked)
                    self._waiting -= len(asked.waiting) if isinstance(asked, _Asked) else 1
            raise

    def _work(self) -> None:
        """Translate batch after batch until told to end."""
        while True:
            with self._shared:
                while not self._asked and not self._closed:
                    self._shared.wait()
                if self._closed:
                    return
                self._gather()
                batch = self._take()
            if isinstance(batch, _Call):
                self._compute(batch)
            elif batch:
                self._translate(batch)

    def _gather(self) -> None:
        """Wait a moment for company, as long as others keep coming."""
        latest = time.monotonic() + max(self.gather_seconds, _WAITING_SHARE * self._last_seconds)
        while not self._closed and self._tokens() < self.batch_tokens:
            quiet = self._arrived + self.gather_seconds
            left = min(latest, quiet) - time.monotonic()
            if left <= 0:
                return
            self._shared.wait(left)

    def _tokens(self) -> int:
        """Count what waits, roughly: as much as matters."""
        total = 0
        for asked in self._asked:
            total += sum(asked.waiting.values()) if isinstance(asked, _Asked) else self.batch_tokens
            if total >= self.batch_tokens:
                break
        return total

    def _take(self) -> list[_Row] | _Call:
        """Choose a batch; those it was made around go to the end of the line."""
        if not self._asked:
            return []
        first = self._asked.pop(0)
        if isinstance(first, _Call):
            self._waiting -= 1
            return first
        alike = [one for one in self._asked if isinstance(one, _Asked) and one.alike(first)]
        middle = next(iter(first.waiting))
        anchor = first.waiting[middle]
        rows = [(one, row) for one in (first, *alike) for row in one.waiting]
        rows.sort(key=lambda row: (row != (first, middle), abs(row[0].waiting[row[1]] - anchor)))
        batch: list[_Row] = []
        widest = 1
        for one, row in rows:
            widest = max(widest, one.waiting[row])
            if batch and (len(batch) + 1) * widest > self.batch_tokens:
                break
            batch.append((one, row))
        for one, row in batch:
            del one.waiting[row]
        self._waiting -= len(batch)
        self._asked = [
            one for one in (*self._asked, first) if isinstance(one, _Call) or one.waiting
        ]
        return batch

    def _compute(self, call: _Call) -> None:
        """Do something else."""
        if call.gone:
            return
        try:
            result: Any = call.function()
        except Exception as error:
            result = error
        self._post(_settle, call.done, result)

    def _translate(self, batch: list[_Row]) -> None:
        """Translate a batch; if that fails, each request's part of it alone."""
        batch = [(asked, row) for asked, row in batch if not asked.gone]
        if not batch:
            return
        begun = time.monotonic()
        try:
            found = self._search(batch)
        except Exception as error:
            apart: dict[_Asked, list[_Row]] = {}
            for asked, row in batch:
                apart.setdefault(asked, []).append((asked, row))
            if len(apart) == 1:
                self._post(_settle, batch[0][0].done, error)
                return
            for part in apart.values():
                self._translate(part)
            return
        seconds = time.monotonic() - begun
        self._last_seconds = seconds
        self._rate += 0.2 * (len(batch) / max(seconds, 1e-6) - self._rate)
        if self._tell is not None:
            tokens = sum(asked.lengths[row] for asked, row in batch)
            self._tell(len(batch), tokens, seconds)
        # Counted first: who has the answer may ask at once what was counted.
        self._post(_deliver, batch, found)

    def _search(self, batch: list[_Row]) -> list[Translation]:
        """Ask the engine."""
        first = batch[0][0]
        keywords = first.search.keywords()
        if first.search.beam is None:
            keywords["beam"] = first.model.facts["beam"]
        if any(asked.watch for asked, _ in batch):

            def watch(snapshot: Snapshot) -> None:
                asked, row = batch[snapshot.sentence]
                if asked.watch is not None:
                    asked.watch(row, snapshot)

            keywords["watch"] = watch
        texts = [asked.texts[row] for asked, row in batch]
        return first.model.translator.translate(texts, **keywords)

    def _post(self, function: Callable[..., None], *arguments: object) -> None:
        """Go on in the event loop, unless that has ended."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)


def _deliver(batch: list[_Row], translations: list[Translation]) -> None:
    """Hand out a batch; who has everything need not wait any more."""
    for (asked, row), translation in zip(batch, translations, strict=True):
        if asked.gone:
            continue
        asked.found[row] = translation
        if asked.each is not None:
            asked.each(row, translation)
        if len(asked.found) == len(asked.texts):
            _settle(asked.done, [asked.found[row] for row in range(len(asked.texts))])


def _settle(done: "asyncio.Future[Any]", result: object) -> None:
    """Answer whoever waits, if anybody does."""
    if done.done():
        return
    if isinstance(result, BaseException):
        done.set_exception(result)
    else:
        done.set_result(result)
