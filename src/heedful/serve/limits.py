"""Request limits and their error messages."""

from dataclasses import dataclass

from heedful.arguments import flag


@dataclass(frozen=True)
class Limits:
    """Limits on requests, connections and the server; each is an option of `heedful serve`."""

    max_characters: int = flag("Maximum number of characters in a request.", 20_000, least=1)
    max_lines: int = flag("Maximum number of texts in a request.", 512, least=1)
    max_alternatives: int = flag(
        "Maximum number of alternative translations per sentence.", 10, least=0, max=100
    )
    max_beam: int = flag("Largest beam size in a request.", 16, least=1)
    max_seconds: float = flag(
        "Maximum number of seconds between a request and its answer.", 60.0, least=0.1
    )
    max_body: int = flag("Maximum size of a request's body in bytes.", 1 << 20, least=100)
    max_connections: int = flag("Maximum number of open connections.", 1000, least=1)
    max_queue: int = flag(
        "Maximum number of waiting sentences; further requests are refused with HTTP status 429.",
        2000,
        least=1,
    )
    read_seconds: float = flag(
        "Seconds after which an incomplete request or an unread answer is aborted.", 20.0, least=0.1
    )
    idle_seconds: float = flag(
        "Seconds that a connection may stay idle between requests.", 30.0, least=1
    )
    stop_seconds: float = flag(
        "Maximum number of seconds to complete requests in progress when the server stops.",
        30.0,
        least=0,
    )


class HttpError(Exception):
    """
    A refused or failed request, with its HTTP status and message.

    `closes`: whether to close the connection, because the start of its next request is unknown.
    """

    def __init__(
        self, status: int, text: str, retry_after: int | None = None, *, closes: bool = False
    ) -> None:
        super().__init__(text)
        self.status, self.text, self.retry_after = status, text, retry_after
        # The connection cannot be reused after a body that was not read to its end.
        self.closes = closes or status in (408, 413)
