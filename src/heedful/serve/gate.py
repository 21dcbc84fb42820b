"""Who may ask, and how often."""

import hmac
import time
from collections import OrderedDict
from pathlib import Path

from fastapi import Request

from heedful.errors import SettingError
from heedful.serve.limits import Refused

# So many clients are remembered; who has not asked for longest is forgotten first.
_CLIENTS = 100_000


class Gate:
    """
    Check keys, and count requests.

    Parameters
    ----------
    keys : Path, optional
        A file of keys; without one everybody may ask.
    per_minute : int, default 0
        Requests of one key or, without keys, of one address; 0 for any number.

    Notes
    -----
    A client may ask its minute's share at once, and then as fast as the share grows again.
    """

    def __init__(self, keys: Path | None = None, per_minute: int = 0) -> None:
        self.path, self.per_minute = keys, per_minute
        self.keys: tuple[bytes, ...] = ()
        self._left: OrderedDict[str | bytes, tuple[float, float]] = OrderedDict()
        self.load()

    @property
    def needs_keys(self) -> bool:
        """Whether a key must come with each request."""
        return self.path is not None

    def load(self) -> None:
        """
        Read the keys again.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        A key stands at the beginning of a line, and may be followed by a space and a note on whose
        it is; a line that begins with # is a note alone.
        """
        if self.path is None:
            return
        try:
            lines = self.path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingError(
                f"--api-keys must name a text file with a key on each line, but {self.path} cannot "
                f"be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}."
            ) from None
        words = [line.split()[0] for line in lines if line.strip()]
        keys = tuple(word.encode() for word in words if not word.startswith("#"))
        if not keys:
            raise SettingError(f"--api-keys must name a file with keys, but {self.path} has none.")
        self.keys = keys

    def check(self, request: Request, api_key: str = "", counts: bool = True) -> None:
        """
        Let a request in, or refuse it.

        Parameters
        ----------
        request : Request
            Its headers may hold the key: ``Authorization: Bearer KEY``.
        api_key : str, default ''
            The key of its body, if any.
        counts : bool, default True
            Whether the request counts among those of its minute.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        Raises `Refused`: 403 without a key that is known, 429 for too many requests.
        """
        who: str | bytes = request.client.host if request.client else ""
        if self.needs_keys:
            scheme, _, token = request.headers.get("authorization", "").partition(" ")
            key = api_key or (token.strip() if scheme.lower() == "bearer" else "")
            known = [one for one in self.keys if hmac.compare_digest(one, key.encode())]
            if not known:
                raise Refused(
                    403,
                    "a valid key must come with each request, as api_key in its body or as "
                    "Authorization: Bearer KEY.",
                )
            who = known[0]
        if counts and self.per_minute:
            self._count(who)

    def _count(self, who: str | bytes) -> None:
        """Take one from what a client has left; what it has grows with time."""
        now = time.monotonic()
        left, before = self._left.pop(who, (float(self.per_minute), now))
        left = min(float(self.per_minute), left + (now - before) * self.per_minute / 60)
        self._left[who] = (max(0.0, left - 1) if left >= 1 else left, now)
        if len(self._left) > _CLIENTS:
            self._left.popitem(last=False)
        if left < 1:
            seconds = 1 + int((1 - left) * 60 / self.per_minute)
            raise Refused(
                429,
                f"at most {self.per_minute:,} requests a minute may come from here; ask again in "
                f"{seconds} s.",
                seconds,
            )
