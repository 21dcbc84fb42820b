"""Files that were translated: in memory, under names that nobody can guess, for some minutes."""

import asyncio
import secrets


class FileStore:
    """
    Keep translated files until they are fetched.

    Parameters
    ----------
    seconds : float, default 600
        That each is kept.
    most_bytes : int, default 67108864
        Of all of them; beyond it the oldest is forgotten early.

    Notes
    -----
    Touched in the event loop alone. What a client calls its file is no part of any name.
    """

    def __init__(self, seconds: float = 600.0, most_bytes: int = 1 << 26) -> None:
        self.seconds, self.most_bytes = seconds, most_bytes
        self._kept: dict[str, bytes] = {}
        self._bytes = 0

    def keep(self, content: bytes, ending: str) -> str:
        """
        Keep a file.

        Parameters
        ----------
        content : bytes
            What is in it.
        ending : str
            Of its name.

        Returns
        -------
        str
            The name.

        Notes
        -----
        It is all that is needed to fetch the file, and has 192 random bits.
        """
        name = secrets.token_urlsafe(24) + ending
        self._kept[name] = content
        self._bytes += len(content)
        while self._bytes > self.most_bytes:
            self._forget(next(iter(self._kept)))
        asyncio.get_running_loop().call_later(self.seconds, self._forget, name)
        return name

    def find(self, name: str) -> bytes | None:
        """
        Find a file.

        Parameters
        ----------
        name : str
            As `keep` gave it.

        Returns
        -------
        bytes or None
            None if it is not there, or no more.

        Notes
        -----
        A name is looked up, never opened.
        """
        return self._kept.get(name)

    def _forget(self, name: str) -> None:
        """Let a file go."""
        self._bytes -= len(self._kept.pop(name, b""))
