"""
Streamed responses: one line of JSON per event.

The worker thread reports every step. Up to 64 steps wait here for the client to read them; beyond
that, only the newest step of each sentence waits. So a client can follow even a very short search.
A slow client receives fewer steps, so that it does not fill the server's memory.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace

from pydantic import BaseModel

from heedful.errors import HeedfulError
from heedful.search.observer import HypothesisView, Snapshot
from heedful.serve.batch_queue import Search
from heedful.serve.documents.file_kinds import Form
from heedful.serve.limits import HttpError
from heedful.serve.pipeline import TextResult, translate
from heedful.serve.response_schemas import (
    EndEvent,
    ErrorEvent,
    PartialHypothesis,
    SentenceEvent,
    StepEvent,
)
from heedful.serve.responses import detected_language, sentence_translation
from heedful.serve.routing import ModelRoute
from heedful.serve.service import Service
from heedful.text.lines import without_controls
from heedful.translation.result import Translation

# Seconds between writes: fifty writes a second look continuous; more would only cost time.
_BETWEEN_WRITES = 0.02
# Once this many steps wait, only the newest step of a sentence is kept.
_WAITING_STEPS = 64

# An observed step of a sentence, and the hypotheses that were finished by then.
_Step = tuple[Snapshot, tuple[HypothesisView, ...]]


class Stream:
    """The translation of one request as events; canceled when the client disconnects."""

    def __init__(
        self, service: Service, route: ModelRoute, search: Search, shows_reading: bool = False
    ) -> None:
        self.service, self.route, self.search = service, route, search
        self._shows_reading = shows_reading
        # Waiting steps by sentence, with the finished hypotheses: one of them may be the best.
        self._steps: dict[int, list[_Step]] = {}
        # Finished hypotheses by sentence, without their end symbols.
        self._over: dict[int, tuple[HypothesisView, ...]] = {}
        # Finished sentences; they become JSON only when the client reads, as attention is large.
        self._done: list[tuple[int, str, Translation]] = []
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def begin(self, text: str, form: Form) -> None:
        """
        Start translating and wait for the first event.

        Errors before this event are raised, because the HTTP status has not been sent yet.
        """
        self._task = asyncio.ensure_future(
            translate(
                self.service.worker,
                text,
                self.route,
                self.search,
                form=form,
                on_sentence=self._piece,
                on_step=self._step,
            )
        )
        self._task.add_done_callback(lambda _: self._news.set())
        try:
            await self._news.wait()
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        if self._task.done():
            self._task.result()

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield all events as lines, within the time limit for responses; call `begin` first."""
        task = self._task
        latest = time.monotonic() + self.service.limits.max_seconds
        try:
            while not task.done():
                left = latest - time.monotonic()
                if left <= 0:
                    raise HttpError(
                        503, "the answer took too long and was stopped; send less in one request."
                    )
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
        """Wait for an event; after a step, wait a moment longer to combine several steps."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return
        self._news.clear()
        if not self._done:
            await asyncio.sleep(_BETWEEN_WRITES)

    def _piece(self, number: int, source: str, translation: Translation) -> None:
        """Receive a finished sentence, in the event loop."""
        self._done.append((number, source, translation))
        self._news.set()

    def _step(self, number: int, snapshot: Snapshot) -> None:
        """Receive a step, in the worker thread."""
        if snapshot.group == 0:
            ended = (replace(seen, tokens=seen.tokens[:-1]) for seen in snapshot.ended)
            self._over[number] = (*self._over.get(number, ()), *ended, *snapshot.cut)
            steps = self._steps  # the event loop may replace the attribute with an empty dict
            waiting = sum(map(len, steps.values()))
            earlier = steps.get(number, []) if waiting < _WAITING_STEPS else []
            steps[number] = [*earlier, (snapshot, self._over[number])]
            self._loop.call_soon_threadsafe(self._news.set)

    async def _lines(self) -> AsyncIterator[bytes]:
        """Yield the pending events as lines: the steps, followed by the finished sentences."""
        done, self._done = self._done, []
        steps, self._steps = self._steps, {}
        for number, of_sentence in sorted(steps.items()):
            for step in of_sentence:
                if event := self._step_event(number, *step):
                    yield _line(event)
        for sentence in done:
            if self.search.attention:
                yield await asyncio.to_thread(self._sentence_line, *sentence)
            else:
                yield self._sentence_line(*sentence)

    def _sentence_line(self, number: int, source: str, translation: Translation) -> bytes:
        """Write a finished sentence."""
        shows_reading = self._shows_reading
        response = sentence_translation(source, translation, self.route.name, shows_reading)
        return _line(SentenceEvent(sentence=number, **response.__dict__))

    def _step_event(
        self, number: int, snapshot: Snapshot, over: tuple[HypothesisView, ...]
    ) -> StepEvent | None:
        """Build the event of a step, with open and finished hypotheses, best first."""
        model = self.route.model
        if model is None or not snapshot.open:
            return None
        decode = model.resident.tokenizer.decode
        best_first = sorted([*over, *snapshot.open], key=lambda seen: -seen.score)
        beam = [
            PartialHypothesis(
                text=without_controls(decode(seen.tokens))[0],
                log_probability=seen.log_probability,
                ended=True if seen in over else None,
            )
            for seen in best_first
        ]
        return StepEvent(sentence=number, step=snapshot.step, text=beam[0].text, beam=beam)

    def _end(self, result: TextResult) -> EndEvent:
        """Build the last event, with the translated text."""
        detected = detected_language(self.route.detected)
        return EndEvent(model=self.route.name, text=result.translation.text, detected=detected)


def _line(event: BaseModel) -> bytes:
    """Encode an event as one line of JSON."""
    return event.model_dump_json(exclude_none=True).encode() + b"\n"
