"""
Escaping of arbitrary text in a model card: YAML in the front matter, Markdown in the body.

Names of files, settings and licenses may contain any characters. In YAML they become quoted
scalars. In Markdown they become code, in which HTML, links and emphasis have no effect.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ./-]*")
_TICKS = re.compile(r"`+")


def yaml_lines(value: object) -> list[str]:
    """
    Write mappings, lists, text and numbers as YAML in block style.

    >>> yaml_lines({"language": ["en", "no"], "score": 1.5})
    ['language:', '  - "en"', '  - "no"', 'score: 1.5']
    """
    return list(_block(value))


def code(text: str) -> str:
    """
    Write text as inline code.

    >>> code("train.en"), code("a`b")
    ('`train.en`', '`` a`b ``')
    """
    shown = _visible(text)
    if not shown.strip():
        return "`(empty)`"
    fence = "`" * (_longest_ticks(shown) + 1)
    space = " " if len(fence) > 1 or shown != shown.strip() else ""
    return f"{fence}{space}{shown}{space}{fence}"


def code_block(lines: Sequence[str], language: str) -> list[str]:
    """Write lines as a block of code."""
    shown = [_visible(line) for line in lines]
    fence = "`" * max(3, _longest_ticks("\n".join(shown)) + 1)
    return [fence + language, *shown, fence]


def plain(text: str) -> str:
    """Write a name unchanged, or as code if it has special characters."""
    return text if _PLAIN.fullmatch(text) else code(text)


def _block(value: object) -> Iterator[str]:
    """Write a mapping or a list line by line, and any other value as one scalar."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if _is_nested(item):
                yield f"{key}:"
                yield from (f"  {line}" for line in _block(item))
            else:
                yield f"{key}: {_scalar(item)}"
    elif _is_nested(value) and isinstance(value, Sequence):
        for item in value:
            first, *rest = _block(item)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(value)


def _is_nested(value: object) -> bool:
    """Return whether a value is a mapping or a list."""
    return isinstance(value, Mapping) or (
        isinstance(value, Sequence) and not isinstance(value, str)
    )


def _scalar(value: object) -> str:
    """Write a scalar; text is quoted, because YAML reads `no`, a language code, as false."""
    if not isinstance(value, str):
        return repr(value)
    escaped = "".join(_escape(letter) for letter in _replace_surrogates(value))
    return f'"{escaped}"'


def _escape(letter: str) -> str:
    """Escape a character within double quotes."""
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08X}"


def _visible(text: str) -> str:
    """Write invisible characters, such as line ends and direction marks, as escapes."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in _replace_surrogates(text)
    )


def _replace_surrogates(text: str) -> str:
    """Replace unpaired surrogates, which occur in file names that are not UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _longest_ticks(text: str) -> int:
    """Return the length of the longest run of backticks."""
    return max(map(len, _TICKS.findall(text)), default=0)
