"""API keys and rate limits."""

import hmac
import ipaddress
import time
from collections import OrderedDict
from pathlib import Path

from fastapi import Request

from heedful.errors import SettingError
from heedful.files import read_text_within
from heedful.serve.limits import HttpError

# Maximum number of clients to remember; the least recently seen client is forgotten first.
_CLIENTS = 100_000


class RateLimit:
    """A token bucket for each client, refilled within a minute."""

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._left: OrderedDict[str | bytes, tuple[float, float]] = OrderedDict()

    def wait(self, client: str | bytes) -> int:
        """Return the seconds until the client's next request is allowed; 0 if it is allowed now."""
        left = self._now(client)
        return 0 if left >= 1 else 1 + int((1 - left) * 60 / self.per_minute)

    def take(self, client: str | bytes) -> None:
        """Count an allowed request; refused requests do not count."""
        left = self._now(client)
        self._left.pop(client, None)
        self._left[client] = (left - 1 if left >= 1 else left, time.monotonic())
        if len(self._left) > _CLIENTS:
            self._left.popitem(last=False)

    def _now(self, client: str | bytes) -> float:
        """Compute how many tokens a client has left; the number grows with time."""
        full, now = float(self.per_minute), time.monotonic()
        left, before = self._left.get(client, (full, now))
        return min(full, left + (now - before) * self.per_minute / 60)


class Auth:
    """
    API keys and rate limits.

    `per_minute`: maximum number of requests per minute with one key or, without keys, from one
    address; 0 for no limit. `wrong_keys`: maximum number of wrong keys per minute from one
    address; 0 for no limit.

    A client may send a minute's requests at once; afterwards its allowance refills steadily.
    """

    def __init__(self, keys: Path | None = None, per_minute: int = 0, wrong_keys: int = 10) -> None:
        self.path = keys
        self.keys: tuple[bytes, ...] = ()
        self._requests, self._wrong = RateLimit(per_minute), RateLimit(wrong_keys)
        self.load()

    @property
    def needs_keys(self) -> bool:
        """Whether requests need a key."""
        return self.path is not None

    def load(self) -> None:
        """Read the file, and replace the keys; if this raises `SettingError`, the old keys stay."""
        self.keys = self.read()

    def read(self) -> tuple[bytes, ...]:
        """Read the keys from the file."""
        # A key is the first word of a line; the rest of the line is ignored and may name its owner.
        # A line that begins with # is a comment.
        if self.path is None:
            return ()
        try:
            lines = read_text_within(self.path).splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingError(
                f"--api-keys must name a text file with one key on each line, but {self.path} "
                f"cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}."
            ) from None
        words = [line.split()[0] for line in lines if line.strip()]
        keys = tuple(word.encode() for word in words if not word.startswith("#"))
        if not keys:
            raise SettingError(f"--api-keys must name a file with keys, but {self.path} has none.")
        return keys

    def check(self, request: Request, api_key: str = "", counts: bool = True) -> None:
        """
        Admit a request or refuse it.

        Raises `HttpError`: 403 without a valid key, 429 for too many requests or wrong keys.
        """
        address = client_of(request.client.host if request.client else "")
        client: str | bytes = address
        if self.needs_keys:
            scheme, _, token = request.headers.get("authorization", "").partition(" ")
            # The last byte of a letter in UTF-8 may be a space in Latin-1.
            sent = token.strip(" \t").encode("latin-1") if scheme.lower() == "bearer" else b""
            client = self._check_key(api_key.encode(errors="replace") or sent, address)
        if counts and self._requests.per_minute:
            self._refuse_beyond(
                self._requests, client, "requests per minute are allowed from one address or key"
            )
            self._requests.take(client)

    def _check_key(self, key: bytes, address: str) -> bytes:
        """Check an API key and return it."""
        # After too many wrong keys a valid one is refused as well; otherwise the limit would not
        # slow down an attacker who guesses keys.
        if key and self._wrong.per_minute:
            self._refuse_beyond(
                self._wrong, address, "wrong keys per minute are allowed from one address"
            )
        known = [stored for stored in self.keys if hmac.compare_digest(stored, key)]
        if known:
            return known[0]
        if key and self._wrong.per_minute:
            self._wrong.take(address)
        raise HttpError(
            403,
            "each request must contain a valid key, as api_key in its body or in "
            "the header Authorization: Bearer KEY.",
        )

    def _refuse_beyond(self, rate: RateLimit, client: str | bytes, limit: str) -> None:
        """Refuse a client that has used up its limit."""
        if seconds := rate.wait(client):
            raise HttpError(
                429, f"at most {rate.per_minute:,} {limit}; try again in {seconds} s.", seconds
            )


def client_of(host: str) -> str:
    """
    Return the client that an address belongs to.

    For IPv6, this is the /64 network, because one client can use every address in it.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))


def read_proxies(text: str) -> tuple[str, ...]:
    """Parse --trusted-proxies: addresses and networks separated by commas."""
    try:
        networks = [ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise SettingError(
            "--trusted-proxies must be addresses or networks such as 127.0.0.1,10.0.0.0/8, with "
            f"commas between them, but {error}."
        ) from None
    return tuple(map(str, networks))
