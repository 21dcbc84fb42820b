"""
A translation that grows while it is read: a line of JSON for each event.

Steps come from the translating thread as often as they happen; the newest of each sentence waits
here until the client has taken the last one. Who reads slowly gets fewer steps and needs no more
memory.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace

from pydantic import BaseModel

from heedful.errors import HeedfulError
from heedful.search.observer import HypothesisView, Snapshot
from heedful.serve.batch_queue import Search
from heedful.serve.limits import HttpError
from heedful.serve.pipeline import ProgressCallbacks, TextResult, translate
from heedful.serve.response_schemas import (
    EndEvent,
    ErrorEvent,
    PartialHypothesis,
    SentenceEvent,
    StepEvent,
)
from heedful.serve.responses import detected_language, sentence_translation
from heedful.serve.routing import Form, ModelRoute
from heedful.serve.service import Service
from heedful.translation.result import Translation

# No eye sees more than so many steps a second.
_BETWEEN_STEPS = 0.02


class Stream:
    """
    Tell of a translation while it is made.

    Parameters
    ----------
    service : Service
        Does the work.
    route : ModelRoute
        The model.
    search : Search
        How it searches.

    Notes
    -----
    For one request. A client that goes ends its work.
    """

    def __init__(self, service: Service, route: ModelRoute, search: Search) -> None:
        self.service, self.route, self.search = service, route, search
        self._steps: dict[int, Snapshot] = {}
        # Hypotheses that have ended, without their end symbols: they may still be the best.
        self._over: dict[int, tuple[HypothesisView, ...]] = {}
        # Written when the client takes them: with attention each is large.
        self._done: list[tuple[int, str, Translation]] = []
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def begin(self, text: str, form: Form) -> None:
        """
        Begin to translate, and wait for the first event.

        Parameters
        ----------
        text : str
            The text.
        form : {'text', 'html', 'sentence'}
            What it is.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        Raises `HttpError` while the answer can still have a status of its own.
        """
        callbacks = ProgressCallbacks(self._piece, self._step)
        speaking = translate(
            self.service.worker, text, self.route, self.search, form=form, callbacks=callbacks
        )
        self._task = asyncio.ensure_future(speaking)
        self._task.add_done_callback(lambda _: self._news.set())
        try:
            await self._news.wait()
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        if self._task.done():
            self._task.result()

    async def lines(self) -> AsyncIterator[bytes]:
        """
        Give all events.

        Yields
        ------
        bytes
            One event a line; the last is ``end`` or ``error``.

        Notes
        -----
        After `begin`. Bounded in time like every answer.
        """
        task = self._task
        latest = time.monotonic() + self.service.limits.seconds
        try:
            while not task.done():
                left = latest - time.monotonic()
                if left <= 0:
                    raise HttpError(503, "the answer took too long and was given up; ask for less.")
                await self._wait(min(left, 1.0))
                async for line in self._lines():
                    yield line
            async for line in self._lines():
                yield line
            yield _line(self._end(task.result()))
        except (HttpError, HeedfulError) as error:
            yield _line(ErrorEvent(error=str(error)))
        finally:
            task.cancel()

    async def _wait(self, seconds: float) -> None:
        """Wait for news; after a step a moment longer, for the next."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return
        self._news.clear()
        if not self._done:
            await asyncio.sleep(_BETWEEN_STEPS)

    def _piece(self, number: int, source: str, translation: Translation) -> None:
        """Take a sentence that is done; in the event loop."""
        self._done.append((number, source, translation))
        self._news.set()

    def _step(self, number: int, snapshot: Snapshot) -> None:
        """Take a step; in the translating thread."""
        if snapshot.group == 0:
            ended = (replace(seen, tokens=seen.tokens[:-1]) for seen in snapshot.ended)
            self._over[number] = (*self._over.get(number, ()), *ended, *snapshot.cut)
            self._steps[number] = snapshot
            self._loop.call_soon_threadsafe(self._news.set)

    async def _lines(self) -> AsyncIterator[bytes]:
        """Write what has not been given: newest steps of what still runs, then what is done."""
        done, self._done = self._done, []
        steps, self._steps = self._steps, {}
        over = {number for number, _, _ in done}
        for number, snapshot in sorted(steps.items()):
            if number not in over and (event := self._step_event(number, snapshot)):
                yield _line(event)
        for one in done:
            if self.search.attention:
                yield await asyncio.to_thread(self._sentence_line, *one)
            else:
                yield self._sentence_line(*one)

    def _sentence_line(self, number: int, source: str, translation: Translation) -> bytes:
        """Write a sentence that is done."""
        given = sentence_translation(source, translation, self.route.name)
        return _line(SentenceEvent(sentence=number, **given.__dict__))

    def _step_event(self, number: int, snapshot: Snapshot) -> StepEvent | None:
        """Write the hypotheses of a sentence that are open or have ended, best first."""
        model = self.route.model
        if model is None or not snapshot.open:
            return None
        decode = model.translator.tokenizer.decode
        over = self._over.get(number, ())
        best_first = sorted([*over, *snapshot.open], key=lambda seen: -seen.score)
        beam = [
            PartialHypothesis(
                text=decode(seen.tokens),
                log_probability=seen.log_probability,
                ended=True if seen in over else None,
            )
            for seen in best_first
        ]
        return StepEvent(sentence=number, step=snapshot.step, text=beam[0].text, beam=beam)

    def _end(self, result: TextResult) -> EndEvent:
        """Give the whole text."""
        detected = detected_language(self.route.detected)
        return EndEvent(model=self.route.name, text=result.translation.text, detected=detected)


def _line(event: BaseModel) -> bytes:
    """Write an event."""
    return event.model_dump_json(exclude_none=True).encode() + b"\n"
