"""Which word of a translation translates which word of its sentence."""

from collections.abc import Iterable

Links = Iterable[tuple[int, int]]
"""Numbers of a source word and of a target word, from 0; words are what spaces set apart."""
