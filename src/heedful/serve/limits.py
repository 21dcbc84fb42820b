"""What a server accepts, and what it says about the rest."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """
    Bound what one client may ask and what the server keeps.

    Attributes
    ----------
    characters : int, default 20000
        Of all texts of a request together.
    lines : int, default 512
        Texts of a request.
    alternatives : int, default 10
        Translations of a sentence beside the best.
    beam : int, default 16
        Open hypotheses of a search.
    seconds : float, default 60
        From the last byte of a request to its answer.
    read_seconds : float, default 20
        For a request to arrive, and for each part of an answer to be taken.
    idle_seconds : float, default 30
        That a connection may stay open between two requests.
    stop_seconds : float, default 30
        For what has begun to be finished when the server is told to stop.
    body_bytes : int, default 1048576
        Of a request's body.
    connections : int, default 1000
        Open at once.
    queue : int, default 2000
        Sentences that wait.
    per_minute : int, default 0
        Requests of one address or key; 0 for any number.

    Notes
    -----
    Each is an option of `heedful serve`.
    """

    characters: int = 20_000
    lines: int = 512
    alternatives: int = 10
    beam: int = 16
    seconds: float = 60.0
    read_seconds: float = 20.0
    idle_seconds: float = 30.0
    stop_seconds: float = 30.0
    body_bytes: int = 1 << 20
    connections: int = 1000
    queue: int = 2000
    per_minute: int = 0


class HttpError(Exception):
    """
    A request that gets no translation, and what its client is told.

    Parameters
    ----------
    status : int
        400 what is asked is wrong, 403 the key, 404, 408 too slow, 413 too large, 429 too much,
        503 not now.
    text : str
        One paragraph; never a part of what the client sent.
    retry_after : int, optional
        Seconds to wait before it may go better.

    Notes
    -----
    Raised anywhere below a route; the server answers ``{"error": text}``.
    """

    def __init__(self, status: int, text: str, retry_after: int | None = None) -> None:
        super().__init__(text)
        self.status, self.text, self.retry_after = status, text, retry_after
