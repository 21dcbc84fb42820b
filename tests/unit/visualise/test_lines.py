"""Lines between words: the drawing, and the page around it."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from heedful.errors import SettingError, StorageError
from heedful.visualise.lines import HEAD_COLORS, Head, Panel, attention_lines
from heedful.visualise.report_page import ReportPage

WORDS = ("the", "dog", "saw", "it", ".", "</s>")
pytestmark = pytest.mark.filterwarnings("ignore:labels show boxes")
HOSTILE = ("<script>alert(1)</script>", "&amp;", '"', "$x$", "\x00", "שלום", "😀", "é" * 99)
SHEET = ReportPage("From “saw”", "What is seen.", (("head", "on “dog”"), ("head 1", "0.90")))


def weights(count, seed=1):
    found = np.random.default_rng(seed).random((count, count)) + 0.02
    return found / found.sum(axis=-1, keepdims=True)


def panels(count):
    heads = tuple(Head(n + 1, weights(count, n)) for n in range(3))
    return [Panel("Every word", heads[:1]), Panel("From “saw” alone", heads, (2,))]


def texts(svg):
    root = ElementTree.fromstring(svg)
    return ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize(
    ("ending", "opening"),
    [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".html", b"<!doctype html>")],
)
def test_the_ending_says_the_format(tmp_path, ending, opening):
    out = tmp_path / f"lines{ending}"
    attention_lines(panels(6), WORDS, "run", out, SHEET)
    first = out.read_bytes()
    assert first.startswith(opening)
    assert list(tmp_path.iterdir()) == [out]
    attention_lines(panels(6), WORDS, "run", out, SHEET)
    assert out.read_bytes() == first


@pytest.mark.parametrize("name", ["lines.jpg", "lines", "lines.html.gz"])
def test_another_ending_is_refused_with_the_list_of_endings(tmp_path, name):
    with pytest.raises(SettingError, match=r"\.png, \.svg, \.pdf, \.html"):
        attention_lines(panels(6), WORDS, "run", tmp_path / name, SHEET)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_told(tmp_path):
    for name in ("lines.html", "lines.svg"):
        with pytest.raises(StorageError, match="could not be written"):
            attention_lines(panels(6), WORDS, "run", tmp_path / "nowhere" / name, SHEET)


def test_weights_that_do_not_fit_the_words_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\(5, 5\)"):
        attention_lines(panels(6), WORDS[:5], "run", tmp_path / "a.png", SHEET)
    with pytest.raises(ValueError, match="at least 1"):
        attention_lines(panels(0), (), "run", tmp_path / "a.png", SHEET)


def test_every_word_stands_above_and_below_and_every_head_in_the_legend(tmp_path):
    out = tmp_path / "lines.svg"
    attention_lines(panels(6), WORDS, "run", out, SHEET)
    written = texts(out.read_text(encoding="utf-8"))
    for word in WORDS:
        assert written.count(word) == 4
    for name in ("Every word", "From “saw” alone", "head 1", "head 2", "head 3"):
        assert written.count(name) == 1


def test_a_line_leads_to_every_word_that_is_looked_at_in_the_heads_color(tmp_path):
    looks = np.zeros((3, 3))
    looks[0, 1], looks[0, 2], looks[1, 1], looks[2, 2] = 0.7, 0.3, 1.0, 1.0
    out = tmp_path / "lines.svg"

    def lines(panel):
        attention_lines([panel], WORDS[:3], "run", out, SHEET)
        return len(re.findall(f"stroke: {HEAD_COLORS[4]}", out.read_text(encoding="utf-8")))

    head = Head(5, looks)
    assert lines(Panel("", (head,))) == 4
    assert lines(Panel("", (head,), (0,))) == 2
    assert lines(Panel("", (head,), (1, 2))) == 2


def test_a_stronger_look_is_darker(tmp_path):
    from matplotlib.image import imread

    def ink(weight):
        looks = np.zeros((2, 2))
        looks[0, 1] = weight
        attention_lines(
            [Panel("", (Head(1, looks),))], ("a", "b"), "run", tmp_path / "a.png", SHEET
        )
        return float((1 - imread(tmp_path / "a.png")[..., :3]).sum())

    assert ink(0.0) < ink(0.3) < ink(1.0)


class DrawnPage(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.words.append(data.strip())


def test_a_page_holds_picture_caption_and_numbers_and_asks_nothing_of_the_network(tmp_path):
    out = tmp_path / "lines.html"
    sheet = ReportPage("<b>&", "Caption <i>", (("head", "<script>"), ("head 1", "</td>")))
    attention_lines([Panel("a", (Head(1, weights(8)),))], HOSTILE, "run", out, sheet)
    text = out.read_text(encoding="utf-8")
    page = DrawnPage(text)
    names = [tag for tag, _ in page.tags]
    assert "script" not in names
    assert names.count("svg") == names.count("figure") == names.count("table") == 1
    assert {"<b>&", "Caption <i>", "<script>", "</td>", "😀"} <= set(page.words)
    links = [v for _, a in page.tags for k, v in a.items() if k in ("src", "href", "xlink:href")]
    assert all(link.startswith("#") for link in links)
    assert "default-src 'none'" in text
    assert out.stat().st_size < 200_000


def test_two_hundred_words_fit(tmp_path):
    words = tuple(f"word{number}" for number in range(200))
    out = tmp_path / "long.png"
    attention_lines([Panel("", (Head(1, weights(200)),), (7,))], words, "run", out, SHEET)
    assert out.stat().st_size > 10_000
