"""
The picture of the reading path in the README: the files of a whole run, in reading order.

    python docs/draw_reading_path.py        writes docs/images/reading-path.svg
"""

from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "images" / "reading-path.svg"

# file, what it is, what it hands to the next
READING_PATH = (
    (("config/recipes.py",), "what is trained", "settings"),
    (("training/train.py",), "how a run is put together", "text"),
    (("text/corpus.py", "tokenization/tokenizer.py"), "lines, cut into subwords", "ids"),
    (("data/batching.py", "data/micro_batches.py"), "batches, cut for memory", "a batch"),
    (("model/attention.py",), "equation 1, several heads", "sub-layers"),
    (("model/layers.py",), "encoder and decoder layers", "stacks"),
    (("model/transformer.py",), "the whole model", "states"),
    (
        ("training/trainer.py", "training/loss.py", "training/schedule.py"),
        "steps: loss, gradients, update",
        "weights",
    ),
    (("runs/checkpoint.py",), "what is kept", "run folder"),
    (("search/beam.py",), "the best translations", "hypotheses"),
    (("translation/translator.py",), "text in, text out", ""),
)

COLUMNS, WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 4, 208, 88, 76, 44, 12
INK, SOFT, LINE, FILL, ACCENT = "#1c2733", "#5b6875", "#9fb0c0", "#f4f7fa", "#1d6fa5"


def place(number: int) -> tuple[int, int]:
    """Find the upper left corner of a box; rows are read from left to right."""
    row, column = divmod(number, COLUMNS)
    return MARGIN + column * (WIDTH + GAP_X), MARGIN + row * (HEIGHT + GAP_Y)


def text(x: float, y: float, words: str, *, size: int, colour: str, extra: str = "") -> str:
    """Write one line of text."""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}"{extra}>{escape(words)}</text>'


def box(number: int) -> list[str]:
    """Draw a box with its number, its files and what they are."""
    files, what, _ = READING_PATH[number]
    x, y = place(number)
    parts = [
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="8" fill="{FILL}" '
        f'stroke="{LINE}"/>',
        text(x + 12, y + 22, str(number + 1), size=13, colour=ACCENT, extra=' font-weight="bold"'),
        text(x + 32, y + 22, what, size=12, colour=SOFT),
    ]
    parts += [
        text(x + 12, y + 44 + 18 * line, file, size=12, colour=INK, extra=' class="file"')
        for line, file in enumerate(files)
    ]
    return parts


def arrow(number: int) -> list[str]:
    """Draw the arrow to the next box, with what is handed over."""
    handed = READING_PATH[number][2]
    x, y = place(number)
    next_x, next_y = place(number + 1)
    middle = y + HEIGHT / 2
    if next_y == y:
        start, end = x + WIDTH + 4, next_x - 6
        return [
            f'<path d="M{start} {middle}H{end}" class="arrow"/>',
            text((start + end) / 2, middle - 7, handed, size=11, colour=SOFT, extra=_MIDDLE),
        ]
    # to the first box of the next row
    down, turn = x + WIDTH / 2, y + HEIGHT + GAP_Y / 2
    to = next_x + WIDTH / 2
    return [
        f'<path d="M{down} {y + HEIGHT + 2}V{turn}H{to}V{next_y - 6}" class="arrow"/>',
        text((down + to) / 2, turn - 6, handed, size=11, colour=SOFT, extra=_MIDDLE),
    ]


_MIDDLE = ' text-anchor="middle"'


def picture() -> str:
    """Draw the whole picture as SVG."""
    rows = -(-len(READING_PATH) // COLUMNS)
    width = 2 * MARGIN + COLUMNS * WIDTH + (COLUMNS - 1) * GAP_X
    height = 2 * MARGIN + rows * HEIGHT + (rows - 1) * GAP_Y
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'font-family="system-ui, sans-serif">',
        "<title>The files of a whole run, in reading order</title>",
        "<style>.file{font-family:ui-monospace,monospace}"
        f".arrow{{fill:none;stroke:{ACCENT};stroke-width:1.5;marker-end:url(#tip)}}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{ACCENT}"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#ffffff" rx="10"/>',
    ]
    for number in range(len(READING_PATH)):
        parts += box(number)
        if number + 1 < len(READING_PATH):
            parts += arrow(number)
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(PICTURE.relative_to(ROOT))
