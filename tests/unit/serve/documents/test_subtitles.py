"""Subtitles: any text comes back unchanged, and only the text of cues is translated."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.serve.documents.subtitles import Subtitles, cue_text, is_subtitles
from tests.support.growth import assert_grows_linearly

BITS = [
    "1",
    "22",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "00:00:01,000 --> 00:00:02,000",
    "01:02.5-->01:03.5",
    "WEBVTT",
    "NOTE",
    "STYLE",
    "<i>",
    "</i>",
    "<00:01.000>",
    "{\\an8}",
    "- ",
    "-",
    "♪",
    "&amp;",
    "It rains.",
    " ",
    "\t",
    "a b",
    "<",
    ">",
    "\ufeff",
    "\u2028",
]
PAGES = st.lists(st.sampled_from(BITS), max_size=30).map("".join)


@given(PAGES | st.text(max_size=60))
def test_an_unchanged_translation_is_the_text_itself(text):
    layout = Subtitles.parse(text, "en")
    assert layout.fill(layout.pieces) == text
    assert len(layout.linked) == len(layout.pieces)
    assert isinstance(cue_text(text), str)


STAMP = "00:00:01,000 --> 00:00:02,000"


def lines_of(text):
    return re.split("\r\n|\n|\r", text)


def fixed_lines(text):
    """Stamps, the numbers before them, and the first lines of WebVTT's notes."""
    lines = ["", *lines_of(text), ""]
    is_vtt = text.removeprefix("\ufeff").startswith("WEBVTT")
    for before, line, after in zip(lines, lines[1:], lines[2:], strict=False):
        is_note = is_vtt and not before.strip() and line == "NOTE"
        if line == STAMP or (line == "22" and after == STAMP) or is_note:
            yield line


@given(PAGES)
def test_stamps_numbers_and_blank_lines_stay_whatever_is_translated(text):
    layout = Subtitles.parse(text, "en")
    links = [[(0, 0), (1, 3)] for _ in layout.pieces]
    filled = layout.fill(["viel mehr Wörter als vorher --> hier" for _ in layout.pieces], links)
    assert not Counter(fixed_lines(text)) - Counter(lines_of(filled))
    assert is_subtitles(text) == is_subtitles(filled)


def test_a_note_is_a_block_of_webvtt_without_a_stamp():
    cue = "00:01.000 --> 00:02.000\n"
    for text, pieces in (
        ("NOTE", ("NOTE",)),  # no WebVTT
        (f"WEBVTT\n\nNOTE It rains.\nIt snows.\n\n{cue}Hail\n", ("Hail",)),
        (f"WEBVTT\n\n{cue}NOTE this\n", ("NOTE this",)),
        (f"WEBVTT\n\nNOTE\n{cue}Hail\n", ("Hail",)),
        (f"WEBVTT\n\nNOTE It rains.\nIt snows.\n{cue}Hail\n", ("Hail",)),
        (f"WEBVTT\n{cue}Hail\n", ("Hail",)),
    ):
        assert Subtitles.parse(text, "en").pieces == pieces


def test_text_below_a_stamp_is_no_name_of_the_next_cue():
    cues = "00:01.0 --> 00:02.0\nHail\n00:03.0 --> 00:04.0\nSnow\n7\n00:05.0 --> 00:06.0\nRain\n"
    assert Subtitles.parse(cues, "en").pieces == ("Hail", "Snow", "Rain")


def test_the_lines_of_a_cue_are_wrapped_outside_of_tags():
    text = "00:01.0 --> 00:02.0\n<i>It rains</i> here\nand there\n"
    (piece,) = Subtitles.parse(text, "en").pieces
    assert piece == "It rains here and there"
    links = [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]
    filled = Subtitles.parse(text, "en").fill(["Es regnet hier und dort"], [links])
    assert filled == "00:01.0 --> 00:02.0\n<i>Es regnet</i>\nhier und dort\n"


@pytest.mark.parametrize("part", ["-->", "<i>", "1\n", "{\\", "00:"])
def test_hostile_text_takes_linear_time(part):
    def parse(count):
        cue = f"00:01.000 --> 00:02.000\n{part * count}"
        Subtitles.parse(cue, "en", lambda piece: len(piece) < 500)
        is_subtitles(part * count)

    assert_grows_linearly(parse, 1_000)
