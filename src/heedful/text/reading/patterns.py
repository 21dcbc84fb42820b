r"""
Patterns of text that no model translates: placeholders, addresses, paths, versions.

Only forms that ordinary words never have are included: ``50 % sure`` contains no format specifier,
and ``and/or`` is not a path. Users name further strings with `protected`.
"""

import re
from collections.abc import Iterator

_QUOTED = r"""(?:"[^"<>]*"|'[^'<>]*')"""
_NAME = r"[A-Za-z_][\w:.-]*"
_ENDINGS = (
    "txt|pdf|docx?|xlsx?|pptx?|odt|csv|tsv|jsonl?|ya?ml|toml|xml|html?|md|py|ipynb|js|ts|css|php"
    "|cpp|hpp|java|rs|go|sh|bat|exe|dll|zip|tar|gz|xz|bz2|7z|png|jpe?g|gif|svg|webp|mp[34]|wav"
    "|ini|cfg|conf|log|srt|vtt"
)
_DOMAINS = "com|org|net|edu|gov|io|dev|app|info|eu|uk|de|fr"

_FORMS = (
    # markup: <x id="1"/>, </b>, <!-- … -->, <|end|>, <0x0A>, &nbsp;
    rf"</?{_NAME}(?:\s+{_NAME}\s*=\s*{_QUOTED})*\s*/?>",
    r"<!--.{0,500}?-->|<\|[^|<>]+\|>|<\w+>|>>[\w-]+<<",
    r"&lt;/?\w[^&<>]{0,80}?&gt;",
    r"&(?:[A-Za-z]\w{1,30}|\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6});",
    # two characters that sentencepiece itself writes
    r"[\u2581\u2585]",
    # templates: {{name}}, ${name}, %{name}, {% if %}, <%= name %>, [[name]], {0}, {name:>8}
    r"\{\{.{0,300}?\}\}|\{%.{0,300}?%\}|<%.{0,300}?%>|\[\[[^\[\]]{0,300}\]\]|[$\#%]\{[^{}]{0,300}\}|\{[\w.:!,<>^+\#%-]*\}",
    # ICU messages: {count, plural, one {# dog} other {# dogs}}; shell: $(name); emoji codes:
    # :smile:
    r"\{\w+,\s*(?:plural|select|selectordinal|number|date|time)\b[^{}]*(?:\{[^{}]*\}[^{}]*)*\}",
    r"\$\([^()]*\)|(?<![\w:]):[a-z][\w+-]*:(?![\w:])",
    # formats: %s, %1$s, %-5.2f, %(count)d; variables: $User, %PATH%, __NAME__, ###T01###, @user
    r"%(?:\(\w+\)|\d+\$)?[-+\#0]*\d*(?:\.\d+)?(?:hh?|ll?|[qjztL])?[diouxXeEfFgGcCsSpaA@](?![A-Za-z])",
    r"%L?[1-9](?![\d%.,])|%%",
    r"(?<![\w$])\$[A-Za-z_]\w*(?:/[\w./-]+)?|%[A-Za-z_]\w*%(?:\\[\w.$-]+)*|(?<!\w)__\w+?__(?!\w)",
    r"(?<!\#)\#{2,8}\w{1,99}\#{2,8}|@@\w+@@|(?<![\w@.])@[A-Za-z_]\w+",
    # web and mail addresses; punctuation after an address belongs to the sentence
    r"(?<![\w+.-])\w[\w+.-]{0,30}://[^\s<>\"“”«»]+|www\.[^\s<>\"“”«»]+|mailto:\S+",
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+",
    rf"(?<![\w@.-])(?:[A-Za-z0-9-]{{1,63}}\.){{1,8}}(?:{_DOMAINS})(?:/[^\s<>\"“”«»]*)?(?![\w-])",
    # paths and accounts: C:\a\b, \\host\share, NT\SYSTEM, /usr/bin, ./a/b, ~/a, a/b.txt, b.txt
    r"(?<!\w)[A-Za-z]:\\[^\s\"<>|]*|\\\\[^\s\"<>|]+",
    r"(?<![\w.-])\w[\w.-]{0,255}(?:\\(?![nrt](?:[A-Z\W]|$))[\w.$-]+)+",
    r"(?<![\w./])~?/(?:[\w.@+-]+/)+[\w.@+-]*|(?<![\w./])(?:\.{1,2}|~)/[\w.@+/-]+",
    rf"(?<![\w./-])(?:[\w-][\w.-]{{0,99}}/){{0,20}}[\w-]{{1,99}}(?:\.[\w-]{{1,30}}){{0,8}}\.(?:{_ENDINGS})(?!\w)",
    # not words: a few letters repeated many times, long keys and codes
    r"(?<!\w)(?P<unit>[^\W\d_]{1,8}?)(?P=unit){5,}(?!\w)",
    r"(?<!\S)(?=[A-Za-z+/=_-]*\d)[A-Za-z0-9+/=_-]{32,}(?!\S)",
    # line ends as programs write them, code, identifiers
    r"\\[nrt](?![a-z])|`[^`]+`|(?<!\w)[A-Za-z]+(?:_[A-Za-z0-9]+)+(?!\w)|(?<!\w)\w+\(\)",
    # issue numbers such as #2796, but not the #1 of running text
    r"(?<![\w&\#])\#\d{2,}(?!\w)",
    # versions, dates, hosts, identifiers: v2.3.1, 1.2.3-rc1, 2016-03-19, 10.0.0.1, 1b4e28ba-…
    r"(?<![\w.])v\d+(?:\.\d+)*(?:[-+][\w.]+)?(?!\w)",
    r"(?<![\w.,])(?!\d{1,3}(?:\.\d{3})+(?!\w))\d+\.\d+\.\d+(?:[.+-]\w+)*(?!\w)",
    r"(?<![\w-])\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?Z?)?(?![\w-])",
    r"(?<!\w)[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?!\w)",
)
_PATTERN = re.compile("|".join(_FORMS))
_ADDRESS = re.compile(r"(?<![\w+.-])\w[\w+.-]{0,30}://|www\.|mailto:|/|\\|[\w-]+(?:\.[\w-]+)+/")
_MARKS_AFTER = ".,;:!?…'’"


def held_forms(text: str) -> Iterator[tuple[int, int]]:
    """Find the spans of the forms that are held back, in order."""
    for match in _PATTERN.finditer(text):
        start, end = match.span()
        if _ADDRESS.match(match[0]):
            end = start + len(_without_marks(match[0]))
        if start < end:
            yield start, end


def _without_marks(address: str) -> str:
    """Drop punctuation after an address, and a closing bracket that is not opened in it."""
    while address:
        last = address[-1]
        opening = {")": "(", "]": "["}.get(last, "")
        is_open = bool(opening) and address.count(last) > address.count(opening)
        if not is_open and last not in _MARKS_AFTER:
            break
        address = address[:-1]
    return address
