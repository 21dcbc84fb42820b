"""Documents of Word and OpenDocument: translated in place, opened again, and safe to read."""

import io
import time
import tracemalloc
import zipfile

import docx
import pytest
from docx.enum.text import WD_BREAK
from docx.oxml import OxmlElement
from odf import teletype
from odf.opendocument import OpenDocumentText, load
from odf.style import Style, TextProperties
from odf.text import A, H, LineBreak, P, Span

from heedful.errors import TextError
from heedful.serve.documents.office_document import (
    office_words,
    parse_office,
    read_docx,
    read_odt,
)


def saved(document) -> bytes:
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def word_document() -> bytes:
    document = docx.Document()
    document.add_heading("The big title", 1)
    paragraph = document.add_paragraph("The big ")
    paragraph.add_run("red").bold = True
    paragraph.add_run(" dog sleeps. My boy")
    paragraph.add_run(" stays").italic = True
    paragraph.add_run(".")
    line = document.add_paragraph("a cat")
    line.runs[0].add_break(WD_BREAK.LINE)
    line.add_run("a bird\ta dog")
    field = line.add_run(" of ")
    for kind in ("begin", "separate", "end"):
        mark = OxmlElement("w:fldChar")
        mark.set(docx.oxml.ns.qn("w:fldCharType"), kind)
        field._r.append(mark)
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "a cat", "12"
    document.sections[0].header.paragraphs[0].text = "the header"
    return saved(document)


def open_document() -> bytes:
    document = OpenDocumentText()
    bold = Style(name="bold", family="text")
    bold.addElement(TextProperties(fontweight="bold"))
    document.automaticstyles.addElement(bold)
    document.text.addElement(H(outlinelevel=1, text="The title"))
    paragraph = P(text="The big ")
    paragraph.addElement(Span(stylename=bold, text="red"))
    paragraph.addText(" dog sleeps.")
    paragraph.addElement(LineBreak())
    paragraph.addElement(A(href="http://e.org/a", text="a link"))
    document.text.addElement(paragraph)
    return saved(document)


def shouted(read, content: bytes) -> bytes:
    text, write = read(content)
    layout = parse_office(text, "en")
    assert layout.fill(layout.pieces) == text
    links = [[(place, place) for place in range(9)] for _ in layout.pieces]
    return write(layout.fill([piece.upper() for piece in layout.pieces], links))


def test_a_document_of_word_opens_again_with_its_layout() -> None:
    content = word_document()
    assert parse_office(read_docx(content)[0], "en").pieces[:3] == (
        "The big title",
        "The big red dog sleeps.",
        "My boy stays.",
    )
    document = docx.Document(io.BytesIO(shouted(read_docx, content)))
    title, paragraph, line = document.paragraphs
    assert (title.text, title.style.name) == ("THE BIG TITLE", "Heading 1")
    assert paragraph.text == "THE BIG RED DOG SLEEPS. MY BOY STAYS."
    assert [run.text for run in paragraph.runs if run.bold] == ["RED"]
    assert [run.text.strip() for run in paragraph.runs if run.italic] == ["STAYS"]
    assert line.text == "A CAT\nA BIRD\tA DOG OF "
    kinds = [
        mark.get(docx.oxml.ns.qn("w:fldCharType"))
        for mark in line._p.iter(docx.oxml.ns.qn("w:fldChar"))
    ]
    assert kinds == ["begin", "separate", "end"]
    assert [cell.text for cell in document.tables[0].rows[0].cells] == ["A CAT", "12"]
    assert document.sections[0].header.paragraphs[0].text == "THE HEADER"


def test_a_document_of_opendocument_opens_again_with_its_layout() -> None:
    document = load(io.BytesIO(shouted(read_odt, open_document())))
    (paragraph,) = document.getElementsByType(P)
    assert teletype.extractText(document.getElementsByType(H)[0]) == "THE TITLE"
    assert teletype.extractText(paragraph) == "THE BIG RED DOG SLEEPS.\nA LINK"
    (span,) = document.getElementsByType(Span)
    assert (teletype.extractText(span), span.getAttribute("stylename")) == ("RED", "bold")
    assert document.getElementsByType(A)[0].getAttribute("href") == "http://e.org/a"


@pytest.mark.parametrize(("read", "make"), [(read_docx, word_document), (read_odt, open_document)])
def test_what_is_not_translated_stays_to_the_byte(read, make) -> None:
    content = make()
    before = zipfile.ZipFile(io.BytesIO(content))
    after = zipfile.ZipFile(io.BytesIO(shouted(read, content)))
    assert after.namelist() == before.namelist()
    parts = ("content.xml", "styles.xml", "word/document.xml", "word/header1.xml")
    for name in before.namelist():
        if name not in parts:
            assert after.read(name) == before.read(name)
    if "mimetype" in before.namelist():
        assert after.infolist()[0].filename == "mimetype"
        assert after.infolist()[0].compress_type == zipfile.ZIP_STORED


def test_a_translation_with_control_characters_is_only_text() -> None:
    text, write = read_docx(word_document())
    layout = parse_office(text, "en")
    hostile = ["a\x00b \x01o0\x02 <w:p/> &amp; \x0b"] * len(layout.pieces)
    document = docx.Document(io.BytesIO(write(layout.fill(hostile))))
    assert "<w:p/> &amp;" in document.paragraphs[0].text
    assert "big title" not in office_words(layout.fill(hostile))


def packed(changes: dict[str, bytes], flag: int = 0) -> bytes:
    """A document of Word with other members."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(word_document())) as old:
        members = {name: old.read(name) for name in old.namelist()} | changes
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in members.items():
            new.writestr(name, content)
    content = stream.getvalue()
    if flag:
        at = content.index(b"PK\x01\x02") + 8
        content = content[:at] + bytes([content[at] | flag]) + content[at + 1 :]
    return content


LAUGHS = (
    b"<!DOCTYPE a [<!ENTITY a0 'lol'>"
    + b"".join(b"<!ENTITY a%d '%s'>" % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 10))
    + b"]><a>&a9;</a>"
)
OUTSIDE = b"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"no archive", "must be a whole zip archive"),
        (b"", "must be a whole zip archive"),
        (word_document()[:-200], "must be a whole zip archive"),
        (packed({"word/document.xml": LAUGHS}), "“word/document.xml” declares one"),
        (packed({"word/document.xml": OUTSIDE}), "“word/document.xml” declares one"),
        (packed({"word/document.xml": b"<a/>"}), "must be in Word's usual form"),
        (packed({"word/document.xml": b"<a>"}), "must hold well-formed XML"),
        (packed({"word/document.xml": b"<a>" * 9_000}), "must hold well-formed XML"),
        (packed({"word/document.xml": b" " * (1 << 25)}), "is larger; translate it in parts"),
        (packed({"word/media/a.bin": bytes(1 << 27)}), "it holds more when it is unpacked"),
        (packed({f"word/{n}": b"" for n in range(6_000)}), "at most 5,000 members"),
        (packed({"../../etc/passwd": b"x"}), "one is outside of it"),
        (packed({"/etc/passwd": b"x"}), "one is outside of it"),
        (packed({"word/vbaProject.bin": b"x"}), "must be without macros"),
        (packed({}, flag=1), "it is encrypted"),
        (open_document(), "must hold word/document.xml"),
    ],
)
def test_hostile_documents_are_refused_in_a_sentence(content: bytes, told: str) -> None:
    tracemalloc.start()
    began = time.monotonic()
    try:
        with pytest.raises(TextError) as caught:
            read_docx(content)
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()
    assert time.monotonic() - began < 30
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_macros_and_passwords_of_opendocument_are_refused() -> None:
    for name, content, told in (
        ("Basic/Standard/a.xml", b"x", "must be without macros"),
        ("META-INF/manifest.xml", b"<manifest:encryption-data/>", "without a password"),
    ):
        stream = io.BytesIO(open_document())
        with zipfile.ZipFile(stream) as old:
            members = {entry: old.read(entry) for entry in old.namelist()} | {name: content}
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as new:
            for entry, data in members.items():
                new.writestr(entry, data)
        with pytest.raises(TextError, match=told):
            read_odt(stream.getvalue())
