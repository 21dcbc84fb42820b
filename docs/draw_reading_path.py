"""
Draw the reading path of `how-it-is-built.md`: the files of a run, from recipe to translation.

    python docs/draw_reading_path.py        writes docs/images/reading-path.svg
"""

from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "images" / "reading-path.svg"

# files, and their role
READING_PATH = (
    (("config/recipes.py",), "what is trained"),
    (("training/train.py",), "how a run is put together"),
    (("text/corpus.py", "tokenization/tokenizer.py"), "lines, cut into subwords"),
    (("data/batching.py",), "batches, cut for memory"),
    (("model/attention.py",), "equation 1, several heads"),
    (("model/layers.py",), "encoder and decoder layers"),
    (("model/encoder_decoder.py",), "the whole model"),
    (
        ("training/trainer.py", "kernels/loss.py", "training/schedule.py"),
        "steps: loss, gradients, update",
    ),
    (("runs/checkpoint.py",), "what is kept"),
    (("search/beam.py",), "the best translations"),
    (("translation/translator.py",), "text in, text out"),
)

# data that one box passes to another; boxes are counted from 1
HANDED = {
    (1, 2): "settings",
    (2, 3): "text",
    (3, 4): "ids",
    (4, 8): "batches",
    (5, 6): "sub-layers",
    (6, 7): "stacks",
    (7, 8): "states",
    (8, 9): "weights",
    (9, 11): "run folder",
    (10, 11): "hypotheses",
}
LEGEND = "only the order of reading"

COLUMNS, WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 4, 208, 88, 76, 44, 12
INK, SOFT, LINE, FILL, ACCENT = "#1c2733", "#5b6875", "#9fb0c0", "#f4f7fa", "#1d6fa5"


def place(number: int) -> tuple[int, int]:
    """Find the upper left corner of a box; rows are read from left to right."""
    row, column = divmod(number, COLUMNS)
    return MARGIN + column * (WIDTH + GAP_X), MARGIN + row * (HEIGHT + GAP_Y)


def text(x: float, y: float, words: str, *, size: int, color: str, extra: str = "") -> str:
    """Write one line of text."""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{color}"{extra}>{escape(words)}</text>'


def box(number: int) -> list[str]:
    """Draw a box with its number, its files and their role."""
    files, what = READING_PATH[number]
    x, y = place(number)
    parts = [
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="8" fill="{FILL}" '
        f'stroke="{LINE}"/>',
        text(x + 12, y + 22, str(number + 1), size=13, color=ACCENT, extra=' font-weight="bold"'),
        text(x + 32, y + 22, what, size=12, color=SOFT),
    ]
    parts += [
        text(x + 12, y + 44 + 18 * line, file, size=12, color=INK, extra=' class="file"')
        for line, file in enumerate(files)
    ]
    return parts


def arrow(number: int, to: int, handed: str) -> list[str]:
    """Draw an arrow to another box, with the data passed; dashed for the reading order alone."""
    (x, y), (to_x, to_y) = place(number), place(to)
    middle, bottom = y + HEIGHT / 2, y + HEIGHT
    if to == number + 1 and to_y == y:
        start, end = x + WIDTH + 4, to_x - 6
        path, label = f"M{start} {middle}H{end}", ((start + end) / 2, middle - 7)
    elif to_y == y:  # under the boxes between them
        start, end, turn = x + WIDTH / 2, to_x + WIDTH / 2, bottom + GAP_Y / 2
        path = f"M{start} {bottom + 2}V{turn}H{end}V{bottom + 6}"
        label = ((start + end) / 2, turn - 6)
    elif to_x == x:  # straight down, right of the middle
        start = x + 3 * WIDTH / 4
        path, label = f"M{start} {bottom + 2}V{to_y - 6}", (start + 30, bottom + GAP_Y / 2 + 4)
    else:  # to the first box of the next row
        start, end, turn = x + WIDTH / 2, to_x + WIDTH / 2, bottom + GAP_Y / 2
        path = f"M{start} {bottom + 2}V{turn}H{end}V{to_y - 6}"
        label = ((start + end) / 2, turn - 6)
    kind = "arrow" if handed else "arrow order"
    drawn = [f'<path d="{path}" class="{kind}"/>']
    return [*drawn, text(*label, handed, size=11, color=SOFT, extra=_MIDDLE)] if handed else drawn


def legend() -> list[str]:
    """Explain the dashed arrows in the free place of the last row."""
    x, y = place(len(READING_PATH))
    middle = y + HEIGHT / 2
    return [
        f'<path d="M{x} {middle}H{x + 34}" class="arrow order"/>',
        text(x + 44, middle + 4, LEGEND, size=11, color=SOFT),
    ]


_MIDDLE = ' text-anchor="middle"'


def picture() -> str:
    """Draw the picture as SVG."""
    rows = -(-len(READING_PATH) // COLUMNS)
    width = 2 * MARGIN + COLUMNS * WIDTH + (COLUMNS - 1) * GAP_X
    height = 2 * MARGIN + rows * (HEIGHT + GAP_Y) - GAP_Y // 4
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'font-family="system-ui, sans-serif">',
        "<title>The files of a whole run, in reading order</title>",
        "<style>.file{font-family:ui-monospace,monospace}"
        f".arrow{{fill:none;stroke:{ACCENT};stroke-width:1.5;marker-end:url(#tip)}}"
        f".order{{stroke:{LINE};stroke-dasharray:4 4}}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{ACCENT}"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#ffffff" rx="10"/>',
    ]
    for number in range(len(READING_PATH)):
        parts += box(number)
    order = {(number, number + 1): "" for number in range(1, len(READING_PATH))}
    for (number, to), handed in (order | HANDED).items():
        parts += arrow(number - 1, to - 1, handed)
    parts += legend()
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(PICTURE.relative_to(ROOT))
