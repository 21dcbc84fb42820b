from io import BytesIO

import pytest

from heedful.errors import TextError
from heedful.text.markup import UNREADABLE, Event, read_events


def events(content: bytes, *codes: str, flat: tuple[str, ...] = ()) -> list[Event]:
    return list(read_events(BytesIO(content), "m.tmx", codes, flat))


def declared(encoding: str, text: str, codec: str = "") -> bytes:
    content = f"<?xml version='1.0' encoding='{encoding}'?>\n<a>\n<seg>{text}</seg>\n</a>"
    return content.encode(codec or encoding)


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
        (b"<a>\n<b></a>", "for example with xmllint --recover m.tmx > repaired.tmx."),
        (b"", "no element found"),
        (b'<?xml version="1.0" encoding="klingon"?><a/>', "line 1 declares “klingon”"),
        (b'<?xml version="1.0" encoding="utf-16"?><a/>', "encoding specified in XML"),
        (declared("euc-jp", "é", "latin-1"), "line 3 holds the byte 0x"),
        (declared("windows-1253", "\n\n\xd2", "latin-1"), "line 5 holds the byte 0xd2"),
        (declared("gb18030", "犬")[:-12], "line 3 holds the byte 0x"),
        (b'<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>', "declares “e”"),
    ],
)
def test_what_is_no_plain_xml_is_refused_with_its_line(content, told):
    with pytest.raises(TextError) as refusal:
        events(content)
    assert str(refusal.value).startswith("m.tmx must")
    assert told in str(refusal.value)


@pytest.mark.parametrize(
    "encoding",
    [
        *("UTF-8", "utf8", "UTF-16", "UTF-16LE", "Shift_JIS", "EUC-JP", "ISO-2022-JP", "GB18030"),
        *("GBK", "GB2312", "Big5", "EUC-KR"),
    ],
)
def test_encodings_of_east_asian_text_are_read(encoding: str) -> None:
    text = "中日" * 40_000 + "。"
    assert events(declared(encoding, text))[-2] == Event("seg", None, text)


@pytest.mark.parametrize(
    ("encoding", "codec"),
    [
        *((f"ISO-8859-{number}", "") for number in (1, 2, 3, 4, 9, 10, 13, 14, 15, 16)),
        *(("windows-1252", ""), ("CP1250", ""), ("macintosh", "mac-roman")),
    ],
)
def test_encodings_of_european_text_are_read(encoding: str, codec: str) -> None:
    assert events(declared(encoding, "é\\u00e9", codec))[-2] == Event("seg", None, "é\\u00e9")


@pytest.mark.parametrize(
    "encoding",
    [
        *("unicode_escape", "raw_unicode_escape", "utf-7", "utf-8-sig", "punycode", "idna"),
        *("rot13", "zlib", "base64", "hex", "undefined", "mbcs", "cp037", "charmap"),
    ],
)
def test_encodings_that_only_python_knows_are_refused(encoding: str) -> None:
    with pytest.raises(TextError, match=f"line 1 declares “{encoding}”; convert"):
        events(declared(encoding, r"\x41", "ascii"))


def test_a_declaration_too_long_to_be_looked_up_is_refused() -> None:
    content = declared("unicode_escape", r"\x41", "ascii").replace(b" enc", b" " * 70_000 + b"enc")
    with pytest.raises(TextError, match="must declare its encoding in its first 65,536 bytes"):
        events(content)


def test_flat_elements_follow_each_other_and_are_never_nested() -> None:
    flat = b"<a>\n<b><seg/></b>\n<b>\n<c/></b></a>"
    assert events(flat, flat=("a", "b")) == events(flat)
    nested = flat.replace(b"<c/>", b"<c>\n<x:b/></c>")
    with pytest.raises(
        TextError, match=r"each <b> .*, but line 5 opens one inside the <b> of line 3"
    ):
        events(nested, flat=("a", "b"))


FORBIDDEN = [
    "&#x1F;",
    "&#xFFFF;",
    "&#0;",
    "&#xD800;",
    "&#X41;",
    "&nbsp;",
    "R&D",
    "&",
    "a & b",
    "\x0b",
    "\x01",
    "\uffff",
    "&#x110000;",
    "&lt",
    "&&amp;",
]


@pytest.mark.parametrize("forbidden", FORBIDDEN)
def test_what_xml_forbids_is_marked_wherever_a_chunk_ends(forbidden: str) -> None:
    for pad in (0, *range(65_505, 65_530)):
        content = f"<a><seg>{'x' * pad}{forbidden} y</seg><seg>good</seg></a>".encode()
        texts = [event.text for event in events(content) if event.attributes is None]
        assert UNREADABLE in texts[0]
        assert texts[1] == "good"


@pytest.mark.parametrize("forbidden", ["\x0b", "\x01", "\uffff"])
def test_what_xml_forbids_is_marked_in_literal_text(forbidden: str) -> None:
    for pad in (0, *range(65_490, 65_530)):
        literal = f"<![CDATA[{'x' * pad}{forbidden} R&D &nbsp;]]>"
        content = f"<a><seg>{literal}</seg><seg>good</seg></a>".encode()
        texts = [event.text for event in events(content) if event.attributes is None]
        assert texts[:2] == [f"{'x' * pad}{UNREADABLE} R&D &nbsp;", "good"]


def test_what_xml_allows_is_never_marked() -> None:
    allowed = "&amp;&#9;&#x10FFFF;&#xFFFD; ]] > <![CDATA[R&D &nbsp; <]]>\ufffd \ufdcf"
    for pad in (0, *range(65_470, 65_540, 3)):
        (text,) = [e.text for e in events(f"<seg>{'x' * pad}{allowed}</seg>".encode()) if e.text]
        assert text == "x" * pad + "& \U0010ffff\ufffd ]] > R&D &nbsp; <\ufffd \ufdcf"


def test_the_bytes_of_another_encoding_are_not_taken_for_forbidden_ones() -> None:
    assert events(declared("ISO-8859-1", "ï¿¿ &#233;"))[-2] == Event("seg", None, "ï¿¿ é")
    assert UNREADABLE in events(declared("windows-1252", "é&#x1F;"))[-2].text
