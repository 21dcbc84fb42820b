from io import BytesIO

import pytest

from heedful.errors import TextError
from heedful.text.markup import Event, read_events


def events(content: bytes, *codes: str) -> list[Event]:
    return list(read_events(BytesIO(content), "m.tmx", codes))


def test_elements_begin_and_end_and_a_segment_has_its_text():
    assert events(
        b'<x:tu id="1"><seg>a &amp; <hi>b</hi><ph>c<sub>d</sub></ph>\n e</seg></x:tu>', "ph"
    ) == [
        Event("tu", {"id": "1"}, ""),
        Event("seg", {}, ""),
        Event("seg", None, "a & b e"),
        Event("tu", None, ""),
    ]


def test_text_across_the_pieces_that_are_read_stays_whole():
    long = "ä" * 100_000
    found = events(f"<seg>{long}</seg>".encode())
    assert found[-1] == Event("seg", None, long)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"<a>\n<b></a>", "line 2, column 6 is not (mismatched tag)"),
        (b"", "no element found"),
        (b'<?xml version="1.0" encoding="klingon"?><a/>', "line 1 declares one"),
        (b'<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>', "declares “e”"),
        (b'<!DOCTYPE a SYSTEM "a.dtd"><a>&e;</a>', "uses “e”"),
    ],
)
def test_what_is_no_plain_xml_is_refused_with_its_line(content, told):
    with pytest.raises(TextError) as refusal:
        events(content)
    assert str(refusal.value).startswith("m.tmx must")
    assert told in str(refusal.value)
