"""Translated files, which stay in memory for a few minutes under unguessable names."""

import asyncio
import secrets


class FileStore:
    """Translated files, deleted when they expire or when newer files need the memory."""

    def __init__(self, seconds: float = 600.0, most_bytes: int = 1 << 26) -> None:
        self.seconds, self.most_bytes = seconds, most_bytes
        self._kept: dict[str, bytes] = {}
        self._bytes = 0

    def keep(self, content: bytes, ending: str) -> str:
        """Store a file and return its name."""
        # Anyone who knows the name can fetch the file, so it has 192 random bits.
        name = secrets.token_urlsafe(24) + ending
        self._kept[name] = content
        self._bytes += len(content)
        while self._bytes > self.most_bytes:
            self._forget(next(iter(self._kept)))
        asyncio.get_running_loop().call_later(self.seconds, self._forget, name)
        return name

    def find(self, name: str) -> bytes | None:
        """Return a file, or None if it does not exist; names are never opened as paths."""
        return self._kept.get(name)

    def _forget(self, name: str) -> None:
        """Delete a file."""
        self._bytes -= len(self._kept.pop(name, b""))
