"""
Trees as pictures: an SVG image that needs no library, script or other file.

::

    label    a phrase is one row above its highest child, centered over its children
      │
    ──┴──    lines have corners, so no line crosses a label
    tag
    word     all words are in one row; columns are as wide as their contents

Colors follow the reader's choice of a light or dark theme. Differing phrases have frames, with a
shape for each kind of difference, so color is never the only sign.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate

from heedful.tasks.parsing.trees.differences import TreeDifference
from heedful.tasks.parsing.trees.draw_text import columns, escape_unprintable
from heedful.tasks.parsing.trees.tree import Tree, unescape_brackets
from heedful.visualise.figure_files import cut_end

_MISSED, _WRONG = "missed", "wrong"
_LEGEND = ((_MISSED, "only in the gold tree"), (_WRONG, "only in the predicted tree"))
# Sizes in pixels. A row contains a label, in a frame if it is marked, and the lines below it.
_ROW, _FRAME, _MARGIN, _HEAD, _BETWEEN = 40, 22, 16, 30, 22
_WORD, _TAG, _LABEL, _TEXT = 15, 12, 13, 14
# Space between columns, and space between a frame and its label.
_GAP, _PAD = 12, 6
_CORNER = 6
_LONGEST = 40
# Widths of letters as fractions of the font size, in the widest common font (DejaVu Sans), so that
# text in other fonts also fits. Bold letters are wider.
_NARROW, _USUAL, _CAPITAL, _WIDE, _EMOJI, _BOLD = 0.42, 0.65, 0.85, 1.05, 1.3, 1.18
_FIRST_EMOJI = "\U0001f000"
_LATIN_TO_CYRILLIC = 0x530
# Each rule applies only to this picture, even if it is embedded in a page.
_STYLE = "".join(
    f".heedful-tree {rule}\n"
    for rule in (
        'text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}',
        "text{fill:#23272e}",
        ".page{fill:#fdfdfc}",
        ".word{font-size:15px}",
        ".tag{font-size:12px;fill:#59626d}",
        ".label{font-size:13px;font-weight:600}",
        ".heading{font-size:14px;fill:#59626d}",
        ".line{fill:none;stroke:#8c96a1;stroke-width:1.25}",
        ".missed{fill:#25649f1a;stroke:#25649f;stroke-width:1.75;stroke-dasharray:4 3}",
        ".wrong{fill:#ba59281f;stroke:#ba5928;stroke-width:1.75}",
        ".label.missed{fill:#25649f;stroke:none}",
        ".label.wrong{fill:#a34a1c;stroke:none}",
    )
)
_DARK = "".join(
    f".heedful-tree {rule}\n"
    for rule in (
        "text{fill:#e3e6ea}",
        ".page{fill:#14171b}",
        ".tag,.heedful-tree .heading{fill:#9ba5b1}",
        ".line{stroke:#6b7580}",
        ".missed{fill:#82b8e424;stroke:#82b8e4}",
        ".wrong{fill:#e8946324;stroke:#e89463}",
        ".label.missed{fill:#82b8e4}",
        ".label.wrong{fill:#f0a67c}",
    )
)


@dataclass
class _Drawn:
    """A phrase, or a word with its tag, and its position in the picture."""

    text: str
    """The label or the tag."""
    start: int
    end: int
    """Index after its last column; `start` is the index of its first column."""
    children: tuple["_Drawn", ...] = ()
    word: str = ""
    mark: str = ""
    """The kind of its difference; empty if it does not differ."""
    row: int = 0
    """Number of its row, counted upward; tags are in row 0."""
    middle: float = 0.0

    @property
    def width(self) -> float:
        """Width in pixels of its label, or of its word and tag."""
        if self.word:
            return max(text_width(self.word, _WORD), text_width(self.text, _TAG))
        return text_width(self.text, _LABEL) * _BOLD + 2 * _PAD

    def nodes(self) -> Iterator["_Drawn"]:
        """List the subtree, children first."""
        for child in self.children:
            yield from child.nodes()
        yield self


def draw_tree(tree: Tree) -> str:
    """Draw a tree."""
    return _picture([("", _build(tree))], str(tree))


def draw_pair(gold: Tree, predicted: Tree | None, difference: TreeDifference) -> str:
    """
    Draw a gold tree above a predicted tree, and mark differing phrases.

    If both trees have the same number of words, each word has the same column in both.
    """
    headings = difference.headings()
    trees: list[tuple[str, _Drawn | None]] = [
        (headings[0], _build(gold, difference.missed, _MISSED))
    ]
    written = f"gold {gold}"
    if predicted is None:
        return _picture([*trees, (headings[1], None)], written, _LEGEND[:1])
    heading = f"{headings[1]}, F1 {difference.f1:.1f}"
    trees.append((heading, _build(predicted, difference.wrong, _WRONG)))
    kinds = (difference.missed, difference.wrong)
    legend = [key for key, places in zip(_LEGEND, kinds, strict=True) if places]
    return _picture(trees, f"{written}; predicted {predicted}", legend)


def text_width(text: str, size: int) -> float:
    """Estimate the maximum width of a text in common fonts, in pixels."""
    widths = (_letter_width(letter) for letter in text if columns(letter))
    return size * sum(widths, start=0.0)


def _letter_width(letter: str) -> float:
    """Estimate the width of a letter as a fraction of the font size."""
    if letter >= _FIRST_EMOJI:
        return _EMOJI
    if letter in "iIjltfr.,:;'’|!()[]-/\\ ":
        return _NARROW
    if letter in "mMW%@—…" or columns(letter) == 2:
        return _WIDE
    if letter in "w&+=<>#~^" or letter.isupper():
        return _CAPITAL
    if letter.isascii():
        return _USUAL
    return _CAPITAL if ord(letter) < _LATIN_TO_CYRILLIC else _WIDE


def _build(tree: Tree, marked: Collection[int] = (), mark: str = "") -> _Drawn:
    """Build the drawn phrases and words of a tree, without their horizontal positions."""
    phrases = 0

    def build(node: Tree, start: int) -> _Drawn:
        nonlocal phrases
        text = _short(node.label)
        if node.word is not None:
            return _Drawn(text, start, start + 1, word=_short(unescape_brackets(node.word)))
        mine, end, children = phrases, start, []
        phrases += 1
        for child in node.children:
            children.append(build(child, end))
            end = children[-1].end
        row = 1 + max(child.row for child in children)
        kind = mark if mine in marked else ""
        return _Drawn(text, start, end, tuple(children), mark=kind, row=row)

    return build(tree, 0)


def _short(text: str) -> str:
    """Escape control characters, and cut a text that is very long."""
    return cut_end(escape_unprintable(text), _LONGEST)


def _column_widths(trees: Sequence[_Drawn]) -> list[float]:
    """Choose the widths of the columns that trees share."""
    widths = [0.0] * max(tree.end for tree in trees)
    for node in (node for tree in trees for node in tree.nodes()):
        own = widths[node.start : node.end]
        if (lacking := node.width + _GAP - sum(own)) > 0:
            share = lacking / len(own)
            widths[node.start : node.end] = [width + share for width in own]
    return widths


def _place(tree: _Drawn, edges: Sequence[float]) -> None:
    """Center each label over its children, within its columns."""
    for node in tree.nodes():
        left, right = edges[node.start], edges[node.end]
        ends = (node.children[0].middle, node.children[-1].middle) if node.children else ()
        middle = sum(ends) / 2 if ends else (left + right) / 2
        half = (node.width + _GAP) / 2
        node.middle = min(max(middle, left + half), right - half)


def _picture(
    trees: Sequence[tuple[str, _Drawn | None]],
    written: str,
    legend: Sequence[tuple[str, str]] = (),
) -> str:
    """Draw trees below each other, with a heading above each tree, and the legend."""
    drawn = [tree for _, tree in trees if tree is not None]
    groups = [drawn] if len({tree.end for tree in drawn}) == 1 else [[tree] for tree in drawn]
    width = max([_legend_width(legend), *(text_width(heading, _TEXT) for heading, _ in trees)])
    shared = [(group, _column_widths(group)) for group in groups]
    width = max([width, *(sum(widths) for _, widths in shared)])
    for group, widths in shared:
        edges = list(accumulate(widths, initial=(width - sum(widths)) / 2))
        for tree in group:
            _place(tree, edges)

    parts: list[str] = []
    y = float(_MARGIN)
    for number, (heading, below) in enumerate(trees):
        y += _BETWEEN * bool(number)
        if heading:
            parts.append(_text("heading", 0, y + _TEXT, heading, anchor="start"))
            y += _HEAD
        if below is not None:
            parts += [f'<g transform="translate(0 {_number(y)})">', *_tree(below), "</g>"]
            y += _height(below)
    if legend:
        parts += _legend(legend, y + _BETWEEN)
        y += _BETWEEN + _FRAME
    words = " ".join(node.word for node in drawn[0].nodes() if node.word)
    return _document(width + 2 * _MARGIN, y + _MARGIN, words, escape_unprintable(written), parts)


def _document(width: float, height: float, title: str, described: str, parts: list[str]) -> str:
    """Build an SVG document; `width` and `height` include the margins."""
    size = f'width="{_number(width)}" height="{_number(height)}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" class="heedful-tree" '
            f'viewBox="{-_MARGIN} 0 {_number(width)} {_number(height)}">',
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(described)}</desc>",
            f"<style>\n{_STYLE}@media (prefers-color-scheme:dark){{\n{_DARK}}}\n</style>",
            f'<rect class="page" x="{-_MARGIN}" {size}/>',
            *parts,
            "</svg>\n",
        ]
    )


def _height(tree: _Drawn) -> int:
    """Return the height of a tree: its rows, and the row of words."""
    return tree.row * _ROW + _FRAME + _WORD + _PAD


def _tree(tree: _Drawn) -> Iterator[str]:
    """Draw the lines of a tree, then its labels."""
    nodes = list(tree.nodes())
    top = {id(node): (tree.row - node.row) * _ROW for node in nodes}
    lines: list[str] = []
    for node in nodes:
        start = top[id(node)] + _FRAME
        ends = [(child.middle, top[id(child)]) for child in node.children]
        lines += _lines(node.middle, start, start + (_ROW - _FRAME) / 2, ends)
    if lines:
        yield f'<path class="line" d="{"".join(lines)}"/>'
    for node in nodes:
        y = top[id(node)]
        if node.word:
            yield _text("tag", node.middle, y + 16, node.text)
            yield _text("word", node.middle, y + _FRAME + _WORD, node.word)
            continue
        if node.mark:
            yield _frame(node.mark, node.middle, y, node.width)
        yield _text(f"label {node.mark}".rstrip(), node.middle, y + 16, node.text)


def _lines(
    x: float, y: float, bar: float, children: Sequence[tuple[float, float]]
) -> Iterator[str]:
    """Draw the lines from a label to its children's labels; outer corners are round."""
    if not children:
        return
    stem = f"M{_number(x)} {_number(y)}V{_number(bar)}"
    for child, end in children:
        aside = child - x
        if abs(aside) < 1:
            yield f"M{_number(child)} {_number(y)}V{_number(end)}"
        elif (child, end) in (children[0], children[-1]):
            turn = min(_CORNER, abs(aside))
            yield (
                f"{stem}H{_number(child + (turn if aside < 0 else -turn))}"
                f"Q{_number(child)} {_number(bar)} {_number(child)} {_number(bar + turn)}"
                f"V{_number(end)}"
            )
        else:
            yield f"M{_number(child)} {_number(bar)}V{_number(end)}"


def _legend_width(legend: Sequence[tuple[str, str]]) -> float:
    """Return the width of a legend."""
    widths = (3 * _MARGIN + _FRAME + text_width(words, _TEXT) for _, words in legend)
    return sum(widths, start=0.0)


def _legend(legend: Sequence[tuple[str, str]], y: float) -> Iterator[str]:
    """Draw a frame of each kind, with its meaning."""
    x = 0.0
    for mark, words in legend:
        yield _frame(mark, x + _FRAME, y, 2 * _FRAME)
        yield _text("heading", x + 2 * _FRAME + _PAD, y + 16, words, anchor="start")
        x += _legend_width([(mark, words)])


def _frame(mark: str, middle: float, y: float, width: float) -> str:
    """Draw a frame: rounded and dashed for a missed phrase, rectangular for a wrong phrase."""
    corner = _FRAME / 2 if mark == _MISSED else 0
    return (
        f'<rect class="{mark}" x="{_number(middle - width / 2)}" y="{_number(y)}" '
        f'width="{_number(width)}" height="{_FRAME}" rx="{_number(corner)}"/>'
    )


def _text(kind: str, x: float, y: float, text: str, anchor: str = "middle") -> str:
    """Format a text element."""
    return (
        f'<text class="{kind}" x="{_number(x)}" y="{_number(y)}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )


def _number(value: float) -> str:
    """Format a number with at most one decimal place."""
    return f"{value:.1f}".rstrip("0").rstrip(".")
