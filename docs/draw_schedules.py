"""
Draw the learning rate schedules, with the rates that heedful computes.

    python docs/draw_schedules.py        writes docs/images/schedules.svg
"""

from pathlib import Path

from heedful.training.schedule import Schedule

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "images" / "schedules.svg"

STEPS, WARMUP = 1000, 100
INK, SOFT, LINE, ACCENT = "#1c2733", "#5b6875", "#d5dee6", "#1d6fa5"
COLUMNS, WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 3, 260, 110, 36, 66, 16
# The paper's peak is (d_model * warmup)^-0.5; this factor scales it to 1.
PAPER = {"d_model": 512, "factor": (512 * WARMUP) ** 0.5}
SCHEDULES = (
    ("paper", "equation 3", Schedule("paper", WARMUP, **PAPER)),
    ("constant", "", Schedule("constant", WARMUP, peak=1.0)),
    (
        "inverse_sqrt",
        "any peak; minimum 0.4",
        Schedule("inverse_sqrt", WARMUP, peak=1.0, minimum=0.4),
    ),
    ("cosine", "minimum 0.1", Schedule("cosine", WARMUP, peak=1.0, minimum=0.1, steps=STEPS)),
    (
        "step",
        "decay_start 400, decay_steps 150",
        Schedule("step", WARMUP, peak=1.0, decay_start=400, decay_steps=150),
    ),
    ("plateau", "decays at validations (points)", Schedule("plateau", WARMUP, peak=1.0)),
)
# Steps at which the plateau schedule decays, after too many validations without improvement.
PLATEAUS = (450, 650, 900)


def curve(number: int) -> list[str]:
    """Draw one schedule with its name."""
    name, note, schedule = SCHEDULES[number]
    row, column = divmod(number, COLUMNS)
    left = MARGIN + column * (WIDTH + GAP_X)
    top = MARGIN + 36 + row * (HEIGHT + GAP_Y)

    def place(step: int, rate: float) -> str:
        return f"{left + WIDTH * step / STEPS:.1f} {top + HEIGHT * (1 - rate):.1f}"

    def rate(step: int) -> float:
        return schedule.rate(step, sum(step > decay for decay in PLATEAUS))

    points = "L".join(place(step, rate(step)) for step in range(1, STEPS + 1, 3))
    parts = [
        f'<text x="{left}" y="{top - 20}" font-size="14" fill="{INK}" class="name">{name}</text>',
        f'<text x="{left + WIDTH}" y="{top - 20}" font-size="11" fill="{SOFT}" '
        f'text-anchor="end">{note}</text>',
        f'<path d="M{left} {top}V{top + HEIGHT}H{left + WIDTH}" class="axis"/>',
        f'<path d="M{left} {top}H{left + WIDTH}" class="peak"/>',
        f'<path d="M{points}" class="rate"/>',
    ]
    if name == "plateau":
        parts += [
            f'<circle cx="{place(step, rate(step)).split()[0]}" '
            f'cy="{place(step, rate(step)).split()[1]}" r="3" fill="{ACCENT}"/>'
            for step in PLATEAUS
        ]
    return parts


def picture() -> str:
    """Draw the picture as SVG."""
    rows = -(-len(SCHEDULES) // COLUMNS)
    width = 2 * MARGIN + COLUMNS * WIDTH + (COLUMNS - 1) * GAP_X
    height = 2 * MARGIN + 36 + rows * HEIGHT + (rows - 1) * GAP_Y + 22
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'font-family="system-ui, sans-serif">',
        f"<title>Learning rates over {STEPS:,} steps, {WARMUP} of them warm-up</title>",
        "<style>.name{font-family:ui-monospace,monospace;font-weight:bold}"
        f".axis,.peak{{fill:none;stroke:{LINE}}}.peak{{stroke-dasharray:3 3}}"
        f".rate{{fill:none;stroke:{ACCENT};stroke-width:2;stroke-linejoin:round}}</style>",
        f'<rect width="{width}" height="{height}" fill="#ffffff" rx="10"/>',
    ]
    for number in range(len(SCHEDULES)):
        parts += curve(number)
    parts.append(
        f'<text x="{MARGIN}" y="{height - MARGIN}" font-size="11" fill="{SOFT}">'
        f"{STEPS:,} steps, {WARMUP} of them warm-up; the dashed line is the peak</text>"
    )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(PICTURE.relative_to(ROOT))
