"""Terms from the files of a server, and terms from a request."""

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from heedful.text.reading.terms import Glossary, Terms, read_glossary, read_protected


class ServedTerms:
    """
    Terms from the server's files, which apply to every request.

    `glossary`, `protected`: the files, as for `heedful translate`. `warn`: called with a warning
    about each term with two translations.
    """

    def __init__(
        self,
        glossary: Path | None = None,
        protected: Path | None = None,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._files, self._warn = (glossary, protected), warn
        self.glossary = Glossary()
        self.protected: tuple[str, ...] = ()
        self.load()

    def load(self) -> None:
        """Read the files, and replace the terms; if this raises `TextError`, the old terms stay."""
        self.glossary, self.protected = self.read()

    def read(self) -> tuple[Glossary, tuple[str, ...]]:
        """Read the terms and the protected strings from the files."""
        glossary, protected = self._files
        terms = Glossary.of({} if glossary is None else read_glossary(glossary, self._warn))
        strings = [] if protected is None else read_protected(protected)
        Terms.of(terms, strings)  # raises an error for invalid terms
        return terms, tuple(strings)

    def with_request(
        self, glossary: Mapping[str, str] | None, protected: Sequence[str]
    ) -> tuple[Mapping[str, str], tuple[str, ...]]:
        """Return the server's terms with the terms of a request, which take precedence."""
        own = glossary or {}
        if not own and not protected:
            return self.glossary, self.protected
        strings = [text for text in self.protected if text not in own]
        glossary = ChainMap(dict(own), self.glossary) if own else self.glossary
        return glossary, tuple(dict.fromkeys([*strings, *protected]))
