"""
Listening sockets that systemd passes to a service, and status messages to systemd.

The sockets belong to systemd and stay open while the service restarts: clients that connect
meanwhile wait in the kernel's queue. sd_listen_fds(3) and sd_notify(3) describe the protocols.
"""

import os
import socket
from contextlib import suppress

from heedful.errors import SettingError

# File descriptor of the first socket; 0, 1 and 2 are the standard streams.
_FIRST = 3


def passed_sockets() -> list[socket.socket]:
    """Return the sockets that were passed to this process; empty if there are none."""
    process, count = os.environ.pop("LISTEN_PID", ""), os.environ.pop("LISTEN_FDS", "")
    os.environ.pop("LISTEN_FDNAMES", None)
    # Variables that a parent process has left are not for this process.
    if process != str(os.getpid()) or not (count.isascii() and count.isdigit()):
        return []
    passed = []
    for number in range(_FIRST, _FIRST + int(count)):
        try:
            listener = socket.socket(fileno=number)
        except OSError as error:
            raise SettingError(
                f"LISTEN_FDS must be the number of passed sockets, but socket {number} cannot "
                f"be used: {error.strerror}."
            ) from None
        listener.set_inheritable(False)
        if listener.family not in (socket.AF_INET, socket.AF_INET6) or not listener.getsockopt(
            socket.SOL_SOCKET, socket.SO_ACCEPTCONN
        ):
            listener.close()
            raise SettingError(
                "each passed socket must listen on TCP, but socket "
                f"{number} does not; set ListenStream= to an address and a port."
            )
        passed.append(listener)
    return passed


def notify(state: str) -> None:
    """
    Notify systemd of a new state, if it has requested notifications.

    `state`: such as ``READY=1``.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    # nobody listens at the address if a parent process has left the variable
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as messages:
        # A leading @ stands for the zero byte of an abstract address.
        messages.connect(f"\0{address[1:]}" if address.startswith("@") else address)
        messages.sendall(state.encode())
