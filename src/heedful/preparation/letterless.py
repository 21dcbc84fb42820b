"""Refusal of text that a run would copy and not translate: source lines without letters."""

from collections.abc import Iterator

from heedful.errors import TextError

# Lines such as "12." or "***" are rare in text of languages, and usually have an equal translation.
_MOST = 0.1


class LetterlessPairs:
    """A counter of pairs whose source has no letter and differs from the target."""

    def __init__(self) -> None:
        self._read = self._counted = 0
        self._first = ("", "")

    def watch(self, pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Count pairs while they are read."""
        for source, target in pairs:
            self._read += 1
            if not any(map(str.isalpha, source)) and source.strip() != target.strip():
                self._first = self._first if self._counted else (source, target)
                self._counted += 1
            yield source, target

    def require_few(self) -> None:
        """Raise `TextError` if at least a tenth of the pairs were counted."""
        if self._counted and self._counted >= _MOST * self._read:
            source, target = (f"“{line.strip()[:40]}”" for line in self._first)
            raise TextError(
                f"{self._counted:,} of {self._read:,} source lines have no letters but differ "
                f"from their targets, such as {source} and {target}. With data.reading=text a run "
                "copies such lines instead of translating them; use --set data.reading=exact."
            )
