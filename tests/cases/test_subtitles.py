"""Subtitles: numbers, stamps, blank lines and tags stay, and a cue of two lines is one sentence."""

import re

import pytest
import srt
import webvtt

from heedful.serve.documents.file_kinds import split_text, words_of
from heedful.serve.documents.subtitles import Subtitles, is_subtitles

SRT = (
    "1\n00:00:02,830 --> 00:00:05,560\n<i>A small black\ncat sleeps.</i>\n\n"
    "2\n00:00:05,700 --> 00:00:06,360 X1:40\n- It rains.\n- {\\an8}Where is he?\n\n\n"
    "3\n00:00:07,000 --> 00:00:08,000\nHe said 12\n\n4\n00:00:09,000 --> 00:00:10,000\n2001\n"
)
VTT = (
    "WEBVTT - a film\nKind: captions\n\nNOTE\nnot shown\n\nSTYLE\n::cue { color: red }\n\n"
    "intro\n00:01.000 --> 00:02.500 align:start\n<v Bob>A cat &amp; a dog</v>\n\n"
    "00:03.000 --> 00:04.000\n<00:03.500><c.red>It</c> rains\nhere\n"
)


def upper(text, form="text"):
    layout = split_text(text, form, "en", lambda sentence: True)
    links = [[(place, place) for place in range(len(piece.split()))] for piece in layout.pieces]
    return layout.pieces, layout.fill([piece.upper() for piece in layout.pieces], links)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("text", [SRT, VTT, SRT.rstrip("\n"), f"\ufeff{SRT}"])
def test_what_is_not_translated_stays_to_the_byte(text, line_end):
    text = text.replace("\n", line_end)
    layout = Subtitles.parse(text, "en")
    assert layout.fill(layout.pieces) == text
    _, filled = upper(text)
    assert filled.upper() == text.upper()
    lines = list(zip(text.split(line_end), filled.split(line_end), strict=True))
    assert all(source == target for source, target in lines if "-->" in source)


def test_a_text_of_two_lines_is_one_sentence_and_speakers_are_not(tmp_path):
    pieces, filled = upper(SRT)
    assert pieces == ("A small black cat sleeps.", "It rains.", "Where is he?", "He said 12")
    (tmp_path / "a.srt").write_text(filled)
    cues = list(srt.parse(filled))
    assert [cue.index for cue in cues] == [1, 2, 3, 4]
    assert cues[0].content == "<i>A SMALL BLACK\nCAT SLEEPS.</i>"
    assert cues[1].content.strip() == "- IT RAINS.\n- {\\an8}WHERE IS HE?"


def test_webvtt_opens_again_and_its_text_is_escaped(tmp_path):
    pieces, filled = upper(VTT)
    assert pieces == ("A cat & a dog", "It rains here")
    (tmp_path / "a.vtt").write_text(filled)
    cues = list(webvtt.read(tmp_path / "a.vtt"))
    assert [cue.start for cue in cues] == ["00:00:01.000", "00:00:03.000"]
    layout = Subtitles.parse(VTT, "en")
    hostile = layout.fill(["a <b> --> c", "x\u2028y"])
    assert "a &lt;b&gt; --&gt; c" in hostile
    assert re.findall(".*-->.*", hostile) == re.findall(".*-->.*", VTT)


def test_a_longer_translation_keeps_the_number_of_lines():
    text = "7\n00:00:01,000 --> 00:00:02,000\nIt rains\nhere\n"
    filled = Subtitles.parse(text, "en").fill(["Es regnet hier schon seit drei Tagen"])
    assert filled == text.replace("It rains\nhere", "Es regnet hier\nschon seit drei Tagen")
    filled = Subtitles.parse(text, "en").fill(["这里下雨了"])
    assert filled.count("\n") == text.count("\n")


def test_only_the_stamp_of_a_cue_makes_text_a_subtitle():
    assert is_subtitles(SRT) and is_subtitles(VTT) and is_subtitles(f"title\n{SRT}")
    for text in ("12:30 --> home", "a --> b", "see 00:00:02,830 --> 00:00:05,560 there", ""):
        assert not is_subtitles(text)
    assert "-->" not in words_of(SRT, "text")
    assert "<i>" not in words_of(SRT, "text")
