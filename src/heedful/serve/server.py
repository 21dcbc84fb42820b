"""
The lifecycle of a server, from start to stop.

::

    SIGTERM, SIGINT   new work is refused with 503; the server finishes requests, then ends
    SIGHUP            models, keys and terms are read again; requests in progress keep the old ones

With sockets from systemd, a stopping server refuses no work: it answers the connections that it has
accepted. Later connections wait for the next process.
"""

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

import uvicorn

from heedful.errors import HeedfulError, SettingError
from heedful.serve.app import make_app
from heedful.serve.connection import Connection
from heedful.serve.limits import HttpError
from heedful.serve.service import Service
from heedful.serve.systemd import notify

_log = logging.getLogger("heedful.serve")
# Seconds for sending the last answers after the worker has ended, enough for a client that still
# reads.
_LAST_SECONDS = 2
# Maximum number of connections that wait in the kernel until they are accepted.
_BACKLOG = 2048
# Seconds to wait for the first request on a connection that was accepted just before the stop.
_NEW_SECONDS = 1
# Minimum seconds between two checks for idle models; a model may be busy when its time is up.
_LEAST_SLEEP = 0.05


class Server(uvicorn.Server):
    """
    The HTTP server, from start to graceful stop.

    uvicorn closes its sockets as soon as it begins to stop; this server still answers new clients.
    """

    def __init__(
        self,
        service: Service,
        proxies: tuple[str, ...],
        on_ready: Callable[[], None],
        *,
        is_passed: bool,
        unload_seconds: float | None,
    ) -> None:
        self.service, self._on_ready = service, on_ready
        self._is_passed, self._unload_seconds = is_passed, unload_seconds
        limits = service.limits
        config = uvicorn.Config(
            make_app(service),
            http=Connection,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            # Without named proxies uvicorn would trust the headers of every client on this machine.
            proxy_headers=bool(proxies),
            forwarded_allow_ips=list(proxies),
            backlog=_BACKLOG,
            timeout_keep_alive=max(1, round(limits.idle_seconds)),
            timeout_graceful_shutdown=_LAST_SECONDS,
        )
        super().__init__(config)
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install signal handlers in place of uvicorn's own; called inside the event loop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._begin, self._stop)
        loop.add_signal_handler(signal.SIGHUP, self._begin, self._reload)
        if self._unload_seconds is not None:
            self._begin(partial(self._unload_idle, self._unload_seconds))
        self._on_ready()  # last: whoever reads the message may send a signal at once
        yield
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.remove_signal_handler(number)

    def _begin(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Start a task in the event loop, such as the handler of a signal."""
        task = asyncio.create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _stop(self) -> None:
        """Complete requests in progress, then stop; a second signal stops at once."""
        state, limits = self.service.state, self.service.limits
        if state.leaving:
            self.should_exit = self.force_exit = True
            return
        state.leaving, state.stopping = True, not self._is_passed
        notify("STOPPING=1")
        _log.info("stopping; requests being answered: %d", state.open)
        if self._is_passed:
            for server in getattr(self, "servers", ()):  # none exist during the start
                server.close()
            await self._wait_for_first_requests()
        latest = time.monotonic() + limits.stop_seconds
        while (state.open or self._any_connection("begins")) and time.monotonic() < latest:
            if self.should_exit:
                return
            await asyncio.sleep(0.02)
        if state.open:
            _log.warning("%d requests were not answered in time", state.open)
            self.service.worker.stop()
        self.should_exit = True

    def _any_connection(self, state: str) -> bool:
        """Return whether any connection has the given property of `Connection`."""
        return any(getattr(connection, state) for connection in self.server_state.connections)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer connections that the kernel has already accepted, then end."""
        loop = asyncio.get_running_loop()
        accepted: list[socket.socket] = []
        for place in () if self._is_passed else sockets or ():
            # Accept until the queue is empty, and close the sockets before the loop runs again:
            # the kernel would reset connections that are still in the queue.
            with suppress(OSError):
                while True:
                    accepted.append(place.accept()[0])
        for server in self.servers:
            server.close()
        for client in accepted:
            client.setblocking(False)
            await loop.connect_accepted_socket(self._connection, client)
        await self._wait_for_first_requests()
        await super().shutdown(sockets)

    async def _wait_for_first_requests(self) -> None:
        """Wait a moment for the first requests on new connections."""
        latest = time.monotonic() + _NEW_SECONDS
        await asyncio.sleep(0)
        while self._any_connection("is_new") and time.monotonic() < latest and not self.force_exit:
            await asyncio.sleep(0.02)

    async def _unload_idle(self, seconds: float) -> None:
        """Unload each model that nobody has used for `seconds`, in the worker thread."""
        while True:
            loaded = [model.resident for model in self.service.models.current]
            loaded = [resident for resident in loaded if resident.is_loaded]
            ends = [resident.last_used + seconds for resident in loaded]
            end = min(ends, default=time.monotonic() + seconds)
            await asyncio.sleep(max(_LEAST_SLEEP, end - time.monotonic()))
            for resident in loaded:
                with suppress(HttpError):  # the queue is full: no model is idle
                    await self.service.worker.call(partial(resident.unload, seconds))

    def _connection(self) -> Connection:
        """Create the protocol object of a connection, as uvicorn does."""
        return Connection(self.config, self.server_state, self.lifespan.state)

    async def _reload(self) -> None:
        """Read models, keys and terms again, while the worker keeps translating."""
        service = self.service
        try:
            keys, terms = service.auth.read(), service.terms.read()
            await asyncio.to_thread(service.models.load)
        except (HeedfulError, OSError) as error:
            service.metrics.reloads.labels("failed").inc()
            _log.error("nothing was reloaded: %s", error)
        else:  # replace everything or nothing
            service.auth.keys = keys
            service.terms.glossary, service.terms.protected = terms
            service.metrics.reloads.labels("done").inc()
            _log.info("models, keys and terms were reloaded")


def listen(host: str, port: int) -> socket.socket:
    """
    Bind a port and listen on it.

    `port`: 0 for any free port.

    Call this function before models are opened, so that a port in use is reported at once. Clients
    that connect meanwhile wait. Raises `SettingError`.
    """
    listener: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # Two sockets with SO_REUSEADDR can be bound to one port, but only one can listen.
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        if listener is not None:
            listener.close()
        raise SettingError(
            f"--host and --port must be a free address of this machine, but {host} and {port} are "
            f"not: {error}."
        ) from None
    return listener


def serve(
    service: Service,
    listeners: Sequence[socket.socket],
    proxies: tuple[str, ...],
    on_ready: Callable[[Sequence[str]], None],
    *,
    is_passed: bool,
    unload_seconds: float | None,
) -> None:
    """
    Serve models until SIGTERM or SIGINT; call it in the main thread, which receives signals.

    `is_passed`: whether the sockets stay open after this process has ended.
    """

    def report_ready() -> None:
        on_ready(list(map(_address, listeners)))
        notify("READY=1")

    server = Server(
        service, proxies, report_ready, is_passed=is_passed, unload_seconds=unload_seconds
    )
    server.run(sockets=list(listeners))
    service.worker.stop()  # it still runs after a signal during the start
    service.worker.join()


def _address(listener: socket.socket) -> str:
    """Format the address of a socket as a URL."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
