"""
The host names by which a server may be addressed.

Any website can make its own host name resolve to 127.0.0.1 (DNS rebinding). The browser then
treats a server on this machine as part of that site, whatever the setting of `--cors`. The header
``Host`` still has the site's name. So a server that listens only on this machine refuses host names
that it does not know.
"""

import ipaddress
import re
from collections.abc import Iterable

from heedful.errors import SettingError
from heedful.serve.limits import HttpError

_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?")
_PORT = re.compile(r":[0-9]*\Z")
# A host name has at most 253 characters, but a client may send more.
_MAX_SHOWN = 253


class AllowedHosts:
    """
    The host names that requests may be addressed to.

    `names`: names from --allow-host, in addition to localhost and loopback addresses; ``*`` allows
    any name. `address`: the address on which the server listens; if `names` is empty, an address
    other than loopback allows any name.
    """

    def __init__(self, names: Iterable[str] = (), address: str = "0.0.0.0") -> None:
        self._names = {_read_name(name) for name in names}
        self._any = "*" in self._names or not (self._names or is_loopback(address))

    def check(self, header: str) -> None:
        """
        Check the value of a ``Host`` header, with or without a port.

        Raises `HttpError`. A request without the header is not from a browser, so it is allowed.
        """
        name = _PORT.sub("", header).lower().rstrip(".")
        if self._any or not name or name in self._names or is_loopback(name):
            return
        shown = name[:_MAX_SHOWN]
        raise HttpError(
            421,
            "a request must be sent to localhost or to a name that the server allows with "
            f"--allow-host NAME, but this one was sent to {shown!r}.",
        )


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback name or address, which only this machine can reach."""
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return host.lower() == "localhost"
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _read_name(text: str) -> str:
    """Parse a host name from --allow-host; it must not include a port."""
    name = text.lower().rstrip(".")
    try:
        address = ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        if name != "*" and not _NAME.fullmatch(name):
            raise SettingError(
                "--allow-host must be a host name such as translate.example.org, without https:// "
                f"and without a port, or * for any, but is {text!r}."
            ) from None
        return name
    return f"[{address}]" if address.version == 6 else str(address)
