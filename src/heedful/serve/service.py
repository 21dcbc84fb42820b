"""The state that the routes share, such as the models, the worker and the limits."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request

from heedful.errors import HeedfulError, UserError
from heedful.search.length import LengthPenalty
from heedful.search.settings import SearchOptions
from heedful.serve.allowed_hosts import AllowedHosts
from heedful.serve.auth import Auth
from heedful.serve.file_store import FileStore
from heedful.serve.limits import HttpError, Limits
from heedful.serve.metrics import Metrics
from heedful.serve.middleware import GONE, ServerState
from heedful.serve.models import Models, ServedModel
from heedful.serve.request_body import check_texts, read_body
from heedful.serve.request_schemas import RequestBody, SearchRequest
from heedful.serve.served_terms import ServedTerms
from heedful.serve.worker import Worker

_Body = TypeVar("_Body", bound=RequestBody)
_Result = TypeVar("_Result")


class Service:
    """
    State shared by all routes.

    `cors`: allowed origins of pages; ``*`` for all. `hosts`: host names that requests may be sent
    to. `terms`: terms that apply to every request. `batch_tokens`, `gather_seconds`: options of the
    worker.
    """

    def __init__(
        self,
        models: Models,
        auth: Auth,
        limits: Limits,
        *,
        cors: tuple[str, ...],
        hosts: AllowedHosts,
        terms: ServedTerms,
        batch_tokens: int,
        gather_seconds: float,
    ) -> None:
        self.models, self.auth, self.limits = models, auth, limits
        self.cors, self.hosts, self.terms = cors, hosts, terms
        self.state, self.files = ServerState(), FileStore()
        self.metrics = Metrics(lambda: self.worker.waiting, lambda: models.loaded)
        self.worker = Worker(
            queue=limits.max_queue,
            batch_tokens=batch_tokens,
            gather_seconds=gather_seconds,
            on_batch=self.metrics.record_batch,
        )

    async def read(self, request: Request, kind: type[_Body]) -> _Body:
        """
        Read a request body and check its key and limits.

        Raises `HttpError`. The key may be in the body, so the body is read first.
        """
        body = await read_body(request, kind)
        self.auth.check(request, body.api_key)
        check_texts(body.texts, self.limits)
        return body

    async def wait(self, request: Request, work: Coroutine[Any, Any, _Result]) -> _Result:
        """
        Wait for a job until it is done, the client disconnects or the time limit passes.

        Raises `HttpError` if the time limit passes, the client disconnects, or the job raises
        `HeedfulError`.
        """
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(_wait_for_disconnect(request))
        seconds = self.limits.max_seconds
        try:
            done, _ = await asyncio.wait(
                {task, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if task in done:
                return task.result()
            if gone in done:
                self.metrics.gone.inc()
                raise GONE
            # Without Retry-After, because the same text would take too long again.
            raise HttpError(
                503,
                f"the answer must be ready within {seconds:g} s, but was not; send less text.",
            )
        except UserError as error:
            raise HttpError(400, str(error)) from error
        except HeedfulError as error:
            raise HttpError(500, str(error)) from error
        finally:
            task.cancel()
            gone.cancel()

    def check_alternatives(self, count: int) -> None:
        """Refuse more alternatives than the server allows."""
        most = self.limits.max_alternatives
        if count > most:
            raise HttpError(
                400,
                f"at most {most} alternatives can be returned, but the request asks for {count}.",
            )

    def search_options(
        self, body: SearchRequest, n_best: int, model: ServedModel | None
    ) -> SearchOptions:
        """Check a client's search options for the model of a text, and return them."""
        if body.beam is not None and body.beam > self.limits.max_beam:
            raise HttpError(400, f"beam may be at most {self.limits.max_beam}, but is {body.beam}.")
        self.check_alternatives(n_best - 1)
        if body.length_penalty is not None:
            try:
                LengthPenalty.parse(body.length_penalty)
            except HeedfulError:
                raise HttpError(
                    400,
                    "length_penalty must be gnmt:ALPHA, power:ALPHA or none, where ALPHA is a "
                    "number from 0 to 10.",
                ) from None
        try:
            search = body.model_dump(include=set(SearchOptions.__dataclass_fields__))
            options = SearchOptions(**search | {"n_best": n_best})
            if model is not None:
                model.check_coverage(options)
        except UserError as error:
            raise HttpError(400, str(error)) from error
        return options


async def _wait_for_disconnect(request: Request) -> None:
    """Wait until the client disconnects."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
