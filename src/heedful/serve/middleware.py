"""
ASGI middleware: time and size limits, security headers, metrics, shutdown.

It uses ASGI directly, so that a body that is too large is refused while it arrives. The limits on
connections are in `heedful.serve.connection`.
"""

import asyncio
import json
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from starlette.middleware.cors import CORSMiddleware

from heedful.serve.allowed_hosts import AllowedHosts
from heedful.serve.limits import HttpError, Limits
from heedful.serve.metrics import Metrics
from heedful.serve.request_body import error_response

_log = logging.getLogger("heedful.serve")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

# Paths that are still answered during shutdown.
_ALWAYS = ("/health", "/metrics")
# Log known methods only: a client can send any string.
_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
# Default headers. A browser must neither run an answer as a script nor show it in a frame.
HEADERS = {
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
}


FAILED = HttpError(500, "the server failed; its log has the reason.")
"""The response after an unexpected exception."""


GONE = HttpError(499, "the client has disconnected.")
"""The error for a disconnected client, which appears only in the metrics and the log."""


class ServerState:
    """
    The number of running requests, and whether the server is stopping.

    `stopping`: whether new requests are refused. `leaving`: whether each connection is closed after
    its response, because the process will end.

    Used in the event loop only.
    """

    def __init__(self) -> None:
        self.stopping = self.leaving = False
        self.open = 0


class LimitsMiddleware:
    """
    ASGI middleware with limits, allowed hosts, headers, metrics and logging.

    It logs one line per request, with the route but never with the text, address or key.
    """

    def __init__(
        self,
        app: App,
        limits: Limits,
        state: ServerState,
        metrics: Metrics,
        hosts: AllowedHosts,
        cors: Sequence[str] = (),
    ) -> None:
        self.app, self.limits, self.state, self.metrics = app, limits, state, metrics
        self.hosts = hosts
        self._answer: App = self._pass
        if cors:  # a page of another origin can read refusals, too
            self._answer = CORSMiddleware(
                self._pass,
                allow_origins=cors,
                allow_methods=["GET", "POST"],
                allow_headers=["Authorization", "Content-Type"],
                expose_headers=["Retry-After"],
            )

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in _METHODS else "other"
        # HEAD is handled as GET; uvicorn leaves out the body.
        scope = {**scope, "method": "GET" if method == "HEAD" else scope["method"]}
        self.state.open += 1
        self.metrics.open.inc()
        begun = time.monotonic()
        answer = _TrackedResponse(send, self.state)
        try:
            await self._answer(scope, receive, answer)
        finally:
            self.state.open -= 1
            self.metrics.open.dec()
            seconds = time.monotonic() - begun
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.requests.labels(route, str(answer.status)).inc()
            self.metrics.seconds.labels(route).observe(seconds)
            _log.info("%s %s %s %.0f ms", method, route, answer.status, 1000 * seconds)

    async def _pass(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request; turn every exception into a response."""
        answer = _TrackedResponse(send, self.state)
        try:
            headers = dict(scope["headers"])
            if b"transfer-encoding" in headers and b"content-length" in headers:
                # RFC 9112, 6.3: proxies may disagree on where such a request ends.
                raise HttpError(
                    400,
                    "a request must not have both Content-Length and Transfer-Encoding, but this "
                    "one does.",
                    closes=True,
                )
            self.hosts.check(headers.get(b"host", b"").decode("latin-1"))
            if self.state.stopping and scope["path"] not in _ALWAYS:
                raise HttpError(503, "the server is stopping.", 1)
            announced = headers.get(b"content-length", b"0")
            if not announced.isdigit() or int(announced) > self.limits.max_body:
                raise self._too_large()
            await self.app(scope, self._limit_body(receive), answer)
        except HttpError as refused:
            await answer.instead(refused)
        except Exception as error:
            places = "".join(traceback.format_tb(error.__traceback__))
            _log.error("a request failed: %s\n%s", type(error).__name__, places)
            await answer.instead(FAILED)

    def _limit_body(self, receive: Receive) -> Receive:
        """Return a function like `receive` that limits the time and size of a body."""
        latest = time.monotonic() + self.limits.read_seconds
        size, complete = 0, False

        async def take() -> Message:
            nonlocal size, complete
            if complete:
                return await receive()
            try:
                async with asyncio.timeout(max(0.0, latest - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                text = f"the request did not arrive within {self.limits.read_seconds:g} s."
                raise HttpError(408, text) from None
            size += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if size > self.limits.max_body:
                raise self._too_large()
            return message

        return take

    def _too_large(self) -> HttpError:
        """Build the error for a body that is too large."""
        return HttpError(
            413,
            f"a body may have at most {self.limits.max_body:,} bytes, but this one has more; "
            "send less in one request.",
        )


class _TrackedResponse:
    """A response that adds the default headers and records its own status."""

    def __init__(self, send: Send, state: ServerState) -> None:
        self._send, self._state = send, state
        self.status, self.complete = 0, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ())]
            there = {name.lower() for name, _ in headers}
            headers += [(name, value) for name, value in HEADERS.items() if name not in there]
            is_last = self._state.stopping or self._state.leaving
            if is_last and b"connection" not in there:
                headers.append((b"connection", b"close"))
            message = {**message, "headers": headers}
        elif not message.get("more_body", False):
            self.complete = True
        await self._send(message)

    async def instead(self, refused: HttpError) -> None:
        """Send an error response, or an error as the last line if the response has begun."""
        if self.complete:
            return
        if not self.status:
            answer = error_response(refused)
            start = {"status": answer.status_code, "headers": answer.raw_headers}
            await self({"type": "http.response.start", **start})
            await self({"type": "http.response.body", "body": answer.body})
            return
        line = json.dumps({"event": "error", "error": refused.text})
        await self({"type": "http.response.body", "body": f"{line}\n".encode()})
