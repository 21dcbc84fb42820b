"""
A client connection with the limits that uvicorn lacks.

A connection is closed if a request does not arrive in time or the client does not read in time. If
too many connections are open, a new connection is closed at once. Errors at this level are also
JSON.
"""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from heedful.serve.limits import HttpError
from heedful.serve.request_body import error_response

# Seconds for a client to read an answer that was sent before its request was complete. This is
# long enough for a slow network, but too short for such clients to occupy many connections.
_LINGER_SECONDS = 2


class _Transport:
    """
    A transport that can be closed while the client is still sending.

    If a connection is closed while bytes are unread, the kernel resets it, and the client may lose
    the answer. This transport ends the answer, then reads and drops further bytes for a moment.
    """

    def __init__(self, transport: asyncio.Transport, connection: "Connection") -> None:
        self._transport, self._connection = transport, connection
        self.lingers = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """Return whether the connection is closing."""
        return self.lingers or self._transport.is_closing()

    def close(self) -> None:
        """End the answer now; if the client is still sending, close the connection later."""
        if self.is_closing() or not self._connection.awaits_more():
            self._transport.close()
            return
        self.lingers = True
        self._transport.write_eof()
        self._transport.resume_reading()
        self._connection.loop.call_later(_LINGER_SECONDS, self._transport.abort)


class Connection(H11Protocol):
    """
    An HTTP connection with time limits for reading and writing.

    uvicorn creates one such object per connection. `Limits` and `Metrics` are in the state that the
    application's lifespan provides.
    """

    _is_ended = False
    _reading: asyncio.TimerHandle | None = None
    _writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timer for the first request, or refuse the connection if there are too many."""
        super().connection_made(_Transport(transport, self))  # type: ignore[arg-type]
        if self.client is not None:
            # A socket for IPv4 and IPv6 shows an IPv4 address as ::ffff:1.2.3.4.
            self.client = (self.client[0].removeprefix("::ffff:"), self.client[1])
        self._limits, self._metrics = self.app_state["limits"], self.app_state["metrics"]
        self._metrics.connections.set(len(self.connections))
        most = self._limits.max_connections
        if len(self.connections) > most:
            self._end(503, f"at most {most:,} connections can be open; try again later.")
        else:
            self._reading = self.loop.call_later(self._limits.read_seconds, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers; `exc` is the error that closed the connection, if any."""
        self._stop_reading_clock()
        self.resume_writing()
        super().connection_lost(exc)
        self._metrics.connections.set(len(self.connections))

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_reading_clock()
        elif self._reading is None and not self.transport.is_closing():
            self._reading = self.loop.call_later(self._limits.read_seconds, self._too_slow)

    def pause_writing(self) -> None:
        """Start the timer of a client that does not read."""
        super().pause_writing()
        if self._writing is None:
            seconds = self._limits.read_seconds
            self._writing = self.loop.call_later(seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the timer of a client that reads again."""
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer invalid HTTP with an error, unless an answer is already being sent."""
        del msg
        self._end(400, "a request must be valid HTTP/1.1, but this one is not.")

    def _too_slow(self) -> None:
        """Close a connection whose headers do not arrive in time."""
        self._reading = None
        if not self.transport.is_closing():
            self._end(408, f"a request must arrive within {self._limits.read_seconds:g} s.")

    def _stop_reading_clock(self) -> None:
        """Cancel the timer for the request headers."""
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def awaits_more(self) -> bool:
        """Return whether the client may still be sending a request."""
        return self._is_ended or self.conn.their_state is h11.SEND_BODY

    @property
    def begins(self) -> bool:
        """Whether a request has begun, but its headers are incomplete."""
        return self._reading is not None and bool(self.conn.trailing_data[0])

    @property
    def is_new(self) -> bool:
        """Whether no request has arrived yet."""
        return self.cycle is None and not self.transport.is_closing()

    def _end(self, status: int, text: str) -> None:
        """Send an error if HTTP still allows it, and close the connection."""
        self._stop_reading_clock()
        self._is_ended = True
        silent = not self._is_answering() or not self.cycle.response_started
        if silent and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            answer = error_response(HttpError(status, text, closes=True))
            headers = [*answer.raw_headers, (b"x-content-type-options", b"nosniff")]
            start = h11.Response(status_code=status, headers=headers)
            for event in (start, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                if part := self.conn.send(event):
                    self.transport.write(part)
            if self._is_answering():  # the handler waits for a body that will not arrive
                self.cycle.disconnected = True
                self.cycle.message_event.set()
        self.transport.close()

    def _is_answering(self) -> bool:
        """Return whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete
