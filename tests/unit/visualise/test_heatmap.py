from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.image import imread

from heedful.errors import SettingError, StorageError
from heedful.visualise.heatmap import attention_heatmap
from tests.support.figures import HOSTILE, run_without, words

ENGLISH = ["the", "big", "red", "dog"]
FRENCH = ["le", "gros", "chien", "rouge", "</s>"]
# A machine may lack fonts for some of them.
pytestmark = pytest.mark.filterwarnings("ignore:labels show boxes")
SCRIPTS = ["赤い", "한국어", "कुत्ता", "สุนัข", "الكلب", "собака", "😀", "▁l'", ""]


def weights(*shape: int) -> np.ndarray:
    scores = np.random.default_rng(1).random(shape) + 1e-3
    return scores / scores.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize(
    ("ending", "opening"),
    [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".PNG", b"\x89PNG")],
)
def test_the_ending_says_the_format(tmp_path, ending, opening):
    out = tmp_path / f"attention{ending}"
    attention_heatmap(weights(5, 4), FRENCH, ENGLISH, out, title="the big red dog")
    assert out.read_bytes().startswith(opening)
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("name", ["attention.jpg", "attention", "attention.png.gz"])
def test_another_ending_is_refused_with_the_list_of_endings(tmp_path, name):
    with pytest.raises(SettingError, match=r"\.png, \.svg, \.pdf") as caught:
        attention_heatmap(weights(5, 4), FRENCH, ENGLISH, tmp_path / name)
    assert name in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("shape", [(4, 5), (5, 5), (2, 4, 5), (1, 2, 5, 4), (5,), (0, 5, 4)])
def test_weights_that_do_not_fit_the_tokens_are_refused_with_both_shapes(tmp_path, shape):
    with pytest.raises(ValueError, match=r"\(5, 4\)") as caught:
        attention_heatmap(np.zeros(shape), FRENCH, ENGLISH, tmp_path / "a.png")
    assert str(shape) in str(caught.value)


def test_no_tokens_and_weights_that_are_no_numbers_are_refused(tmp_path):
    with pytest.raises(ValueError, match="without dimensions of 0"):
        attention_heatmap(np.zeros((0, 0)), [], [], tmp_path / "a.png")
    with pytest.raises(ValueError, match="finite"):
        attention_heatmap(np.full((5, 4), np.nan), FRENCH, ENGLISH, tmp_path / "a.png")


def test_every_token_and_the_title_are_written(tmp_path):
    out = tmp_path / "attention.svg"
    attention_heatmap(weights(5, 4), FRENCH, ENGLISH, out, title="layer 2, head 1")
    for word in (*FRENCH, *ENGLISH, "layer 2, head 1"):
        assert word in words(out)


def test_heads_become_small_multiples_with_their_mean_first(tmp_path):
    out = tmp_path / "attention.svg"
    attention_heatmap(weights(3, 5, 4), FRENCH, ENGLISH, out)
    names = [w for w in words(out) if w.startswith(("mean", "head"))]
    assert names == ["mean", "head 1", "head 2", "head 3"]


def test_a_larger_weight_is_darker_and_the_first_row_is_on_top(tmp_path):
    corner = np.zeros((12, 12))
    corner[:6, :6] = 1.0
    attention_heatmap(corner, [""] * 12, [""] * 12, tmp_path / "a.png")
    brightness = imread(tmp_path / "a.png")[:, :, :3].mean(axis=2)
    height, width = brightness.shape
    top, bottom = brightness[height // 8 : height // 3], brightness[2 * height // 3 : -height // 8]
    assert top[:, width // 8 : width // 3].mean() < 0.35
    assert top[:, width // 2 : 3 * width // 4].mean() > 0.9
    assert bottom[:, width // 8 : width // 3].mean() > 0.9


def test_the_picture_grows_with_the_sentences(tmp_path):
    heights = []
    for length in (5, 50):
        tokens = [f"token{number}" for number in range(length)]
        attention_heatmap(weights(length, length), tokens, tokens, tmp_path / "a.png")
        heights.append(imread(tmp_path / "a.png").shape[0])
    # A square is about a quarter of an inch: room for its word at any length.
    assert heights[1] - heights[0] > 45 * 40


@pytest.mark.soak
def test_a_thousand_tokens_make_a_picture_that_can_still_be_opened(tmp_path):
    tokens = ["x"] * 1000
    attention_heatmap(weights(1, 1000), ["y"], tokens, tmp_path / "a.png")
    height, width, _ = imread(tmp_path / "a.png").shape
    assert 5_000 < width < 2**16
    assert height < width


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
@pytest.mark.parametrize("tokens", [SCRIPTS, HOSTILE], ids=["scripts", "hostile"])
def test_no_script_and_no_token_breaks_the_drawing(tmp_path, ending, tokens):
    out = tmp_path / f"attention{ending}"
    size = len(tokens)
    attention_heatmap(weights(size, size), tokens, tokens, out, title=" ".join(tokens))
    assert out.stat().st_size > 1000
    if ending == ".svg" and tokens is SCRIPTS:
        assert set(filter(None, SCRIPTS)) <= set(words(out))
    if ending == ".svg" and tokens is HOSTILE:
        assert {"$x$", "\\x00", "<&>"} <= set(words(out))


@settings(max_examples=15)
@given(st.lists(st.text(max_size=8), min_size=1, max_size=4), st.integers(1, 3))
def test_any_tokens_can_be_drawn(tmp_path_factory, tokens, heads):
    out = tmp_path_factory.mktemp("any") / "attention.svg"
    size = len(tokens)
    attention_heatmap(weights(heads, size, size), tokens, tokens, out)
    assert ElementTree.parse(out).getroot().tag.endswith("svg")


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_the_same_input_gives_the_same_bytes(tmp_path, ending):
    for name in "ab":
        attention_heatmap(weights(2, 5, 4), FRENCH, ENGLISH, tmp_path / f"{name}{ending}", "title")
    first, second = sorted(tmp_path.iterdir())
    assert first.read_bytes() == second.read_bytes()


def test_a_failed_write_leaves_what_was_there(tmp_path):
    folder = tmp_path / "attention.png"
    folder.mkdir()
    (folder / "kept").write_text("kept")
    with pytest.raises(StorageError, match="could not be written") as caught:
        attention_heatmap(weights(5, 4), FRENCH, ENGLISH, folder)
    assert str(folder) in str(caught.value)
    assert (folder / "kept").read_text() == "kept"
    assert list(tmp_path.iterdir()) == [folder]
    with pytest.raises(StorageError, match="No such file"):
        attention_heatmap(weights(5, 4), FRENCH, ENGLISH, tmp_path / "missing" / "a.png")


DRAW = """
from pathlib import Path
import numpy as np
from heedful.errors import MissingExtra
from heedful.visualise.heatmap import attention_heatmap
try:
    attention_heatmap(np.ones((1, 1)), ["a"], ["b"], Path(sys.argv[1] if sys.argv[1:] else "a.png"))
except MissingExtra as error:
    print(error)
"""


def test_without_matplotlib_the_message_names_what_to_install():
    done = run_without("matplotlib", DRAW)
    assert done.returncode == 0, done.stderr
    assert "pip install 'heedful[plot]'" in done.stdout


def test_drawing_needs_neither_torch_nor_pyplot(tmp_path):
    check = (
        f"import os; os.chdir({str(tmp_path)!r})\n{DRAW}\nprint('matplotlib.pyplot' in sys.modules)"
    )
    done = run_without("torch", check)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False"]
    assert (tmp_path / "a.png").exists()
