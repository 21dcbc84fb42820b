"""
Markdown: text is translated in place; code, URLs and the layout of blocks stay unchanged.

A CommonMark parser with tables enabled finds the lines of running text. Their inline markup is
parsed here, because the parser does not report its positions. HTML blocks are read like web pages::

    * See **the [manual](a.md)**, `ls -l`      verbatim  "* "
                                               text      See ** the [ manual ](a.md) **, `ls -l`

The lines of a paragraph are joined, so that a sentence may extend over several lines.
"""

import html
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace

from markdown_it import MarkdownIt
from markdown_it.token import Token

from heedful.serve.documents.html_blocks import Atom, AtomKind
from heedful.serve.documents.html_document import Markup, Sentence, find_sentences
from heedful.text.sentences import Fits

_FRONT_MATTER = re.compile(
    r"\ufeff?(?:---[ \t]*\r?\n.*?\n(?:---|\.\.\.)|\+\+\+\r?\n.*?\n\+\+\+)[ \t]*\r?\n", re.DOTALL
)
_HARD_BREAK = re.compile(r"(?: {2,}|\\)\n")
_MARK = re.compile(
    r"""(?P<escape>\\[!-/:-@\[-`{-~])
    |(?P<code>(?<!`)(?P<ticks>`{1,40})(?!`).{1,2000}?(?<!`)(?P=ticks)(?!`))
    |(?P<point><(?:[A-Za-z][\w+.-]{1,31}:[^\s<>]{0,2000}|[^\s<>@]{1,200}@[^\s<>]{1,200})>
        |<!--.{0,2000}?-->|\[\^[^\]\s]{1,200}\]:?|\[[ xX]\](?=\s)
        |\[!\[[^\[\]\n]{0,500}\](?:\([^()\n]{0,2000}\)|\[[^\[\]\n]{0,200}\])\]
            (?:\([^()\n]{0,2000}\)|\[[^\[\]\n]{0,200}\]))
    |(?P<shown>https?://[^\s<>()\[\]]{1,2000}[^\s<>()\[\].,;:!?'"*_]
        |\{\{[^{}\n]{1,200}\}\}|\$[^$\s](?:[^$\n]{0,200}[^$\s])?\$(?!\d))
    |(?P<tag></?[A-Za-z][^<>]{0,1000}>)
    |(?P<link>!?\[(?P<label>(?:[^\[\]\\`]|\\.|`[^`\n]{0,200}`){0,2000})\]
        (?P<address>\((?:[^()\\\n]|\\.|\([^()\n]{0,500}\)){0,2000}\)|\[[^\[\]\n]{1,200}\]))
    |(?P<reference>!?\[(?P<named>[^\[\]\n]{1,200})\](?:\[\])?)
    |(?P<delimiter>\*{1,3}|_{1,3}|~~)
    |(?P<entity>&[a-zA-Z][a-zA-Z0-9]{1,31};|&\#\d{1,7};|&\#[xX][0-9a-fA-F]{1,6};)
    |(?P<space>\s+)|(?P<text>.)""",
    re.DOTALL | re.VERBOSE,
)
_LONGEST_SHOWN = 40
_SPECIAL = re.compile(r"[\\`*\[\]<|]|(?<!\w)_|_(?!\w)")
_BLOCK_START = re.compile(r"(\s*)((?:\d{1,9}[.)]|[-+>#=~]+)(?=\s|$))")


def parse_markdown(text: str, language: str, fits: Fits | None = None) -> Markup:
    """Find the sentences of Markdown; this never fails, because every text is valid Markdown."""
    parts: list[str | Sentence] = []
    here = 0
    references, spans = _text_spans(text)
    for start, pieces in spans:
        parts.append(text[here:start])
        for piece in pieces:
            if isinstance(piece, _HtmlBlock):
                parts += _html_parts(piece, language, fits)
            elif isinstance(piece, str):
                parts.append(piece)
            else:
                atoms = list(_collapse_spaces(_atoms(piece, references)))
                parts += find_sentences(atoms, language, fits, _escape)
        here = start + sum(len(piece if isinstance(piece, str) else piece.raw) for piece in pieces)
    return Markup.of([*parts, text[here:]])


class _HtmlBlock(str):
    """The source of an HTML block, with and without the prefixes of its lines."""

    inner = ""
    gaps: tuple[str, ...] = ()
    """The line breaks, each followed by the prefix of the next line."""


class _Run(list[str]):
    """Lines of running text, alternating with line ends that contain the next line's prefix."""

    @property
    def raw(self) -> str:
        """The source of the text."""
        return "".join(self)


def _text_spans(text: str) -> tuple[Collection[str], Iterator[tuple[int, list["str | _Run"]]]]:
    """Find the labels of link references, and the start and lines of each block of text."""
    front = _FRONT_MATTER.match(text)
    offset = front.end() if front else 0
    # the parser would replace line ends; these replacements preserve all positions
    body = text[offset:].replace("\r\n", " \n").replace("\r", "\n").replace("\0", " ")
    environment: dict[str, dict[str, object]] = {}
    # the parser's rules for inline marks are not needed, and many open marks make them slow
    parser = MarkdownIt("commonmark").enable("table").disable("inline")
    tokens = parser.parse(body, environment)
    starts = [offset]
    for line in body.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return environment.get("references", {}).keys(), _locate_text(text, tokens, starts)


def _locate_text(
    text: str, tokens: list[Token], starts: list[int]
) -> Iterator[tuple[int, list["str | _Run"]]]:
    """Locate the content of the parser's tokens in the source."""
    reached, is_cell = 0, False
    for token in tokens:
        if token.type in ("td_open", "th_open", "td_close", "th_close"):
            is_cell = token.nesting > 0
        if token.map is None or not token.content.strip():
            continue
        first, end = token.map
        if token.type == "html_block" and (block := _html_block(text, token, starts)):
            reached = block[0] + len(block[1])
            yield block[0], [block[1]]
        if token.type != "inline":
            continue
        run, start = _Run(), -1
        at = max(starts[first], reached)
        # the parser replaced tabs before a line with spaces
        lines = [line.strip() for line in token.content.split("\n")]
        # a backslash before a line end is a line break, not text
        lines[:-1] = [line.removesuffix("\\") for line in lines[:-1]]
        if is_cell:  # the parser removed the backslash before a vertical bar
            lines = [line.replace("|", r"\|") for line in lines]
        for line in lines:
            place = text.find(line, at, starts[min(end, len(starts) - 1)])
            if place < 0:
                break
            if start < 0:
                start = place
            else:
                run.append(text[at:place])
            run.append(line)
            at = place + len(line)
        else:
            reached = at
            yield start, _divide_at_breaks(run)


def _html_block(text: str, token: Token, starts: list[int]) -> tuple[int, _HtmlBlock] | None:
    """Find the start and source of an HTML block; None if a line differs from the source."""
    first, end = token.map or (0, 0)
    if not token.level:
        return starts[first], _HtmlBlock(text[starts[first] : starts[min(end, len(starts) - 1)]])
    # in a list or a quotation, each line has a prefix
    places, lines = list[int](), [line.rstrip() for line in token.content.rstrip().split("\n")]
    for number, line in enumerate(lines, first):
        source = text[starts[number] : starts[number + 1] - 1].rstrip()
        if not source.endswith(line):
            line = lines[number - first] = line.lstrip()  # without spaces that replaced tabs
        if not source.endswith(line):
            return None
        places.append(starts[number] + len(source) - len(line))
    ends = [place + len(line) for place, line in zip(places, lines, strict=True)]
    gaps = tuple(text[stop:place] for stop, place in zip(ends, places[1:], strict=False))
    block = _HtmlBlock(text[places[0] : ends[-1]])
    block.inner, block.gaps = "\n".join(lines), gaps
    return places[0], block


def _html_parts(block: _HtmlBlock, language: str, fits: Fits | None) -> Iterator[str | Sentence]:
    """Find the sentences of an HTML block, and put the prefixes of its lines back."""
    gaps = iter(block.gaps)

    def with_prefixes(raw: str) -> str:
        head, *lines = raw.split("\n")
        return head + "".join(next(gaps) + line for line in lines)

    for part in Markup.parse(block.inner or block, language, fits).parts:
        if not block.gaps:
            yield part
        elif isinstance(part, str):
            yield with_prefixes(part)
        else:
            # a tag inside a sentence rarely has line ends, so the first prefix is used for all
            marks = tuple(
                mark._replace(
                    atom=mark.atom._replace(raw=mark.atom.raw.replace("\n", block.gaps[0]))
                )
                for mark in part.marks
            )
            yield replace(part, raw=with_prefixes(part.raw), marks=marks)


def _divide_at_breaks(run: "_Run") -> list["str | _Run"]:
    """Divide a text at hard line breaks."""
    pieces: list[str | _Run] = [_Run(run[:1])]
    for gap, line in zip(run[1::2], run[2::2], strict=True):
        last = pieces[-1]
        if _HARD_BREAK.match(gap.replace("\r", "")):
            pieces += [gap, _Run([line])]
        elif isinstance(last, _Run):
            last += [gap, line]
    return pieces


def _atoms(run: "_Run", references: Collection[str]) -> Iterator[Atom]:
    """Split running text into characters and inline markup."""
    for number, line in enumerate(run):
        if number % 2:
            yield Atom(AtomKind.TEXT, line, " ")
        else:
            yield from _pair_emphasis(list(_marks(line, references)))


def _marks(line: str, references: Collection[str]) -> Iterator[Atom]:
    """Split a line into atoms; `_pair_emphasis` later matches the emphasis delimiters."""
    for match in _MARK.finditer(line):
        raw = match[0]
        if match["link"]:
            opening = raw[: raw.index("[") + 1]
            yield Atom(AtomKind.OPEN, opening, name="link")
            yield from _marks(match["label"], references)
            yield Atom(AtomKind.CLOSE, f"]{match['address']}", name="link")
        elif match["reference"] and " ".join(match["named"].upper().split()) in references:
            yield _untranslated_atom(raw, match["named"])
        elif match["reference"]:
            yield from (Atom(AtomKind.TEXT, character, character) for character in raw)
        elif match["code"] or match["shown"]:
            yield _untranslated_atom(raw, raw.strip("`").strip())
        elif match["point"] or match["tag"]:
            yield _tag(raw) if match["tag"] else Atom(AtomKind.POINT, raw)
        elif match["delimiter"]:
            yield Atom(AtomKind.TEXT, raw, raw, _flanking(line, match))
        elif match["space"]:
            yield Atom(AtomKind.TEXT, raw, " ")
        else:
            shown = raw[1:] if match["escape"] else html.unescape(raw) if match["entity"] else raw
            yield Atom(AtomKind.TEXT, raw, shown if shown.strip() else " ")


def _untranslated_atom(raw: str, shown: str) -> Atom:
    """Keep markup unchanged; the model sees the text inside it if this text is short."""
    if 0 < len(shown) <= _LONGEST_SHOWN:
        return Atom(AtomKind.KEPT, raw, " ".join(shown.split()))
    return Atom(AtomKind.POINT, raw)


def _tag(raw: str) -> Atom:
    """Parse an HTML tag."""
    name = re.match(r"</?([A-Za-z][\w-]*)", raw)
    tag = name[1].lower() if name else ""
    if tag in ("br", "img", "hr", "wbr", "input") or raw.endswith("/>"):
        return Atom(AtomKind.POINT, raw)
    return Atom(AtomKind.CLOSE if raw[1] == "/" else AtomKind.OPEN, raw, name=tag)


def _flanking(line: str, match: "re.Match[str]") -> str:
    """Return whether a delimiter may open (o) or close (c) emphasis, given its neighbors."""
    before = line[match.start() - 1] if match.start() else " "
    after = line[match.end()] if match.end() < len(line) else " "
    may_open = not after.isspace() and (after.isalnum() or not before.isalnum())
    may_close = not before.isspace() and (before.isalnum() or not after.isalnum())
    if match[0][0] == "_":
        may_open, may_close = may_open and not before.isalnum(), may_close and not after.isalnum()
    return "o" * may_open + "c" * may_close


def _pair_emphasis(atoms: list[Atom]) -> list[Atom]:
    """Match opening and closing emphasis delimiters; unmatched delimiters are text."""
    outside: list[tuple[list[int], Counter[str]]] = []
    waiting: list[int] = []
    counts: Counter[str] = Counter()  # of the waiting marks
    for place, atom in enumerate(atoms):
        if atom.name == "link" and atom.part is AtomKind.OPEN:
            # emphasis that begins in a link must end in the link
            outside.append((waiting, counts))
            waiting, counts = [], Counter()
        elif atom.name == "link" and atom.part is AtomKind.CLOSE:
            waiting, counts = outside.pop()
        if atom.part is not AtomKind.TEXT or not atom.name:
            continue
        if "c" in atom.name and counts[atom.raw]:
            partner = -1
            while partner < 0 or atoms[partner].raw != atom.raw:
                partner = waiting.pop()
                counts[atoms[partner].raw] -= 1
            atoms[partner] = Atom(AtomKind.OPEN, atom.raw, name=atom.raw)
            atoms[place] = Atom(AtomKind.CLOSE, atom.raw, name=atom.raw)
        elif "o" in atom.name:
            waiting.append(place)
            counts[atom.raw] += 1
    return [atom._replace(name="") if atom.part is AtomKind.TEXT else atom for atom in atoms]


def _collapse_spaces(atoms: Iterator[Atom]) -> Iterator[Atom]:
    """Collapse several spaces in the text to one."""
    is_spaced = True
    for atom in atoms:
        if atom.part is AtomKind.TEXT and atom.text == " ":
            yield atom._replace(text="" if is_spaced else " ")
            is_spaced = True
        else:
            is_spaced = is_spaced and not atom.text
            yield atom


def _escape(text: str) -> str:
    """Escape a translation, so that no part of it is read as markup."""
    text = _SPECIAL.sub(r"\\\g<0>", text)
    start = _BLOCK_START.match(text)
    return f"{text[: start.end() - 1]}\\{text[start.end() - 1 :]}" if start else text
