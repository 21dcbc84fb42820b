import itertools
import math
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.image import imread

from heedful.errors import SettingError
from heedful.visualise import curves
from heedful.visualise.curves import RunCurves, learning_curves, moving_mean
from tests.support.figures import HOSTILE, run_without, words

TITLES = [
    "Training loss",
    "Training perplexity",
    "Validation perplexity",
    "Validation BLEU",
    "Learning rate",
    "Target tokens per second",
]


def run(name: str, lines: int = 50, validations: int = 5, best: float = 30.0, with_errors=False):
    x = np.arange(1.0, lines + 1)
    valid_x = np.linspace(1.0, lines, validations)
    nll = 1 + 5 * np.exp(-x / lines * 5)
    return RunCurves(
        name,
        x,
        nll + 1,
        nll,
        np.minimum(x / 10, x**-0.5) / 100,
        np.full(lines, 25_000.0),
        valid_x,
        1 + 4 * np.exp(-valid_x / lines * 5),
        {
            "BLEU": (best * (1 - np.exp(-valid_x / lines * 5)) / (1 - math.exp(-5)), True),
            "CER": (
                np.linspace(80.0, 20.0, validations) if with_errors else valid_x * np.nan,
                False,
            ),
        },
    )


def test_every_panel_and_every_run_is_named(tmp_path):
    out = tmp_path / "curves.svg"
    learning_curves([run("post"), run("pre-norm", 80)], out, x_label="target tokens")
    found = words(out)
    assert [word for word in found if word in TITLES] == TITLES
    assert found.count("target tokens") == len(TITLES)
    assert {"post", "pre-norm", "30.0"} <= set(found)


def test_a_reward_that_one_of_the_runs_has_gets_a_panel(tmp_path):
    nothing = np.full(50, np.nan)
    rewarded = replace(
        run("reward"), figures={"reward": np.linspace(0.2, 0.4, 50), "risk": nothing}
    )
    plain = replace(run("likelihood"), figures={"reward": nothing, "risk": nothing})
    out = tmp_path / "curves.svg"
    learning_curves([plain, rewarded], out)
    found = words(out)
    assert "Training reward" in found and "Training risk" not in found


@pytest.mark.parametrize(("low", "high"), [(-0.4, -0.2), (-0.2, 0.4), (0.2, 0.4)])
def test_a_panel_begins_at_zero_unless_a_value_is_negative(low, high):
    rewarded = replace(run("one"), figures={"reward": np.linspace(low, high, 50)})
    panels = {axes.get_title("left"): axes for axes in curves._draw([rewarded], "steps", 1).axes}
    bottom, top = panels["Training reward"].get_ylim()
    assert bottom < low < high < top
    assert (bottom == 0) == (low > 0)


def test_a_score_that_a_run_has_gets_a_panel_where_the_lowest_error_is_the_best(tmp_path):
    learning_curves([run("one"), run("two", with_errors=True)], tmp_path / "curves.svg")
    found = words(tmp_path / "curves.svg")
    assert "Validation CER" in found
    assert "20.0" in found


@pytest.mark.parametrize(
    ("ending", "opening"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".PDF", b"%PDF")]
)
def test_the_ending_says_the_format_and_the_same_runs_give_the_same_bytes(
    tmp_path, ending, opening
):
    for name in "ab":
        learning_curves([run("one", 9, validations=0)], tmp_path / f"{name}{ending}")
    first, second = (path.read_bytes() for path in sorted(tmp_path.iterdir()))
    assert first.startswith(opening)
    assert first == second


def test_what_no_run_has_gets_no_panel(tmp_path):
    out = tmp_path / "curves.svg"
    learning_curves([run("never validated", validations=0)], out)
    assert [word for word in words(out) if word in TITLES] == [
        title for title in TITLES if "Validation" not in title
    ]
    learning_curves([run("never validated", validations=0), run("validated")], out)
    assert [word for word in words(out) if word in TITLES] == TITLES


@pytest.mark.parametrize("lines", [0, 1, 2])
def test_a_run_that_has_just_begun_can_be_drawn(tmp_path, lines):
    out = tmp_path / "curves.png"
    learning_curves([run("young", lines, validations=0)], out, smooth=9)
    if lines == 1:  # a line of one point shows only as its marker
        blue = (np.abs(imread(out)[:, :, :3] - np.array([0, 0x72, 0xB2]) / 255) < 0.02).all(axis=2)
        assert blue.sum() > 4 * 60


def test_losses_that_are_no_numbers_leave_gaps_and_break_nothing(tmp_path):
    broken = run("diverged")
    broken.nll[20:] = np.nan
    broken.loss[20:] = np.inf
    broken.nll[10] = 1e6
    broken.valid_loss[:] = np.nan
    broken.scores["BLEU"][0][:] = 0.0
    nowhere = run("never counted")
    nowhere.x[:] = nowhere.valid_x[:] = np.nan
    learning_curves([nowhere, broken], tmp_path / "curves.svg")
    assert "Validation perplexity" not in words(tmp_path / "curves.svg")
    learning_curves([nowhere], tmp_path / "curves.svg")
    assert [word for word in words(tmp_path / "curves.svg") if word in TITLES] == []


@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_no_name_breaks_the_drawing(tmp_path, ending):
    out = tmp_path / f"curves{ending}"
    learning_curves([run(name, 2, validations=0) for name in HOSTILE], out)
    if ending == ".svg":
        assert {"$x$", "\\x00", "<&>", "é" * 23 + "…" + "é" * 24} <= set(words(out))


def test_a_spike_in_a_long_log_stays_in_sight_and_the_file_stays_small(tmp_path):
    long = run("long", 200_000)
    long.loss[:] = 2.0
    long.loss[123_456] = 100.0
    learning_curves([long], tmp_path / "curves.svg")
    assert "100" in words(tmp_path / "curves.svg")
    assert (tmp_path / "curves.svg").stat().st_size < 2_000_000


@pytest.mark.parametrize(
    ("scores", "low", "high"),
    [
        ([10.0, 35.9, 33.0, 32.0, 31.0], 0.1, 0.4),  # the second of five, not the last
        ([10.0, 35.9, 33.0, 35.9, 31.0], 0.5, 0.7),  # of equal values, that with the lowest loss
    ],
)
def test_the_best_bleu_stands_above_its_point(tmp_path, scores, low, high):
    one = run("one")
    one.scores["BLEU"][0][:] = scores
    out = tmp_path / "curves.svg"
    learning_curves([one], out)
    root = ElementTree.parse(out).getroot()
    texts = {
        "".join(text.itertext()): text
        for text in root.iter("{http://www.w3.org/2000/svg}text")
        if "".join(text.itertext()) in ("35.9", "Validation BLEU", "Learning rate")
    }
    left, label, right = (
        float(re.search(r"([\d.]+)", texts[word].get("x") or texts[word].get("transform"))[0])
        for word in ("Validation BLEU", "35.9", "Learning rate")
    )
    assert low < (label - left) / (right - left) < high


def test_labels_of_results_that_are_close_stand_apart(tmp_path):
    out = tmp_path / "curves.svg"
    learning_curves([run(str(n), best=30 + n / 10) for n in range(5)], out)
    heights = {}
    for text in ElementTree.parse(out).getroot().iter("{http://www.w3.org/2000/svg}text"):
        word = "".join(text.itertext())
        if re.fullmatch(r"30\.\d", word):
            heights[word] = float(text.get("y"))
    assert sorted(heights) == [f"30.{n}" for n in range(5)]
    ordered = [heights[word] for word in sorted(heights, reverse=True)]
    assert min(np.diff(ordered)) >= 8  # letters are eight points high, the best on top


def test_moving_mean_of_one_line_is_the_curve_itself():
    values = np.array([1.0, np.nan, 3.0])
    assert moving_mean(values, 1) is values


@settings(max_examples=50)
@given(st.lists(st.floats(-100, 100) | st.just(math.nan), max_size=30), st.integers(2, 40))
def test_moving_mean_equals_its_slow_twin(numbers, lines):
    values = np.array(numbers, dtype=np.float64)
    slow = []
    for place, value in enumerate(numbers):
        reach = min(lines // 2, place, len(numbers) - 1 - place)
        near = [v for v in numbers[place - reach : place + reach + 1] if math.isfinite(v)]
        slow.append(sum(near) / len(near) if math.isfinite(value) else math.nan)
    np.testing.assert_allclose(moving_mean(values, lines), slow, atol=1e-9)


# What people see who lack one kind of cone, as matrices on linear RGB: Machado, Oliveira and
# Fernandes 2009, “A Physiologically-based Model for Simulation of Color Vision Deficiency”.
VISION = {
    "all cones": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def cielab(color: str, vision: np.ndarray) -> np.ndarray:
    s = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(s <= 0.04045, s / 12.92, ((s + 0.055) / 1.055) ** 2.4)
    xyz = XYZ @ np.clip(np.array(vision) @ linear, 0, 1) / XYZ.sum(axis=1)
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), xyz * 841 / 108 + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISION)
def test_colors_can_be_told_apart_with_any_cones(vision):
    seen = [cielab(color, VISION[vision]) for color in curves._COLORS]
    nearest = min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2))
    assert nearest > 15  # a difference of 2.3 is just noticeable


def test_no_two_of_28_runs_look_alike():
    styles = [curves.system_style(index) for index in range(28)]
    assert len({tuple(style.values()) for style in styles}) == 28


def test_nothing_to_draw_and_another_ending_are_refused(tmp_path):
    with pytest.raises(ValueError, match="at least one run"):
        learning_curves([], tmp_path / "curves.png")
    with pytest.raises(SettingError, match=r"\.png, \.svg, \.pdf"):
        learning_curves([run("one")], tmp_path / "curves.gif")
    assert not list(tmp_path.iterdir())


DRAW = """
from pathlib import Path
import numpy as np
from heedful.errors import MissingExtra
from heedful.visualise.curves import RunCurves, learning_curves
one = np.ones(1)
try:
    learning_curves([RunCurves("a", *[one] * 7, {{"BLEU": (one, True)}})], Path({out!r}))
except MissingExtra as error:
    print(error)
print("matplotlib.pyplot" in sys.modules)
"""


@pytest.mark.parametrize("module", ["matplotlib", "torch"])
def test_drawing_needs_matplotlib_and_no_torch(tmp_path, module):
    out: Path = tmp_path / "curves.png"
    done = run_without(module, DRAW.format(out=str(out)))
    assert done.returncode == 0, done.stderr
    assert ("pip install 'heedful[plot]'" in done.stdout) == (module == "matplotlib")
    assert out.exists() == (module == "torch")
    assert done.stdout.endswith("False\n")
