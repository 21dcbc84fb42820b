"""Request limits and their error messages."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of one client and of the server."""

    characters: int = 20_000
    """Characters of all texts of a request together."""
    lines: int = 512
    """Texts of a request."""
    alternatives: int = 10
    """Translations of a sentence in addition to the best."""
    beam: int = 16
    """Open hypotheses of a search."""
    seconds: float = 60.0
    """Seconds from the last byte of a request to its answer."""
    read_seconds: float = 20.0
    """Seconds for a request to arrive, and for the client to read each part of an answer."""
    idle_seconds: float = 30.0
    """Seconds that a connection may be idle between two requests."""
    stop_seconds: float = 30.0
    """Seconds for running requests to finish when the server stops."""
    body_bytes: int = 1 << 20
    """Bytes of a request's body."""
    connections: int = 1000
    """Number of open connections."""
    queue: int = 2000
    """Number of waiting sentences."""
    per_minute: int = 0
    """Requests of one address or key; 0 for any number."""


class HttpError(Exception):
    """
    A refused request, with its HTTP status and message.

    `closes`: whether the connection ends, because the start of its next request is unknown.
    """

    def __init__(
        self, status: int, text: str, retry_after: int | None = None, *, closes: bool = False
    ) -> None:
        super().__init__(text)
        self.status, self.text, self.retry_after = status, text, retry_after
        # After a body that was not read to its end the connection cannot be reused.
        self.closes = closes or status in (408, 413)
