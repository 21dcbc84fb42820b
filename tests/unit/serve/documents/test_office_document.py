"""Documents of Word and OpenDocument: translated in place, opened again, and safe to read."""

import io
import tracemalloc
import zipfile

import docx
import pytest
from docx.enum.text import WD_BREAK
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import nsdecls, qn
from odf import teletype
from odf.namespaces import OFFICENS
from odf.office import Annotation, AnnotationEnd
from odf.opendocument import OpenDocumentText, load
from odf.style import Style, TextProperties
from odf.text import (
    A,
    Bookmark,
    BookmarkEnd,
    BookmarkStart,
    ChangedRegion,
    ChangeEnd,
    ChangeStart,
    Deletion,
    H,
    LineBreak,
    P,
    S,
    Span,
    Tab,
    TrackedChanges,
)

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


def paragraph_of_word(inner: str) -> bytes:
    """A document of Word with one paragraph of raw XML."""
    document = docx.Document()
    document.add_paragraph("x")._p.getparent().replace(
        document.paragraphs[-1]._p,
        parse_xml(f"<w:p {nsdecls('w')}><w:pPr><w:jc w:val='left'/></w:pPr>{inner}</w:p>"),
    )
    return saved(document)


def run_of_word(text: str) -> str:
    return f"<w:r><w:t xml:space='preserve'>{text}</w:t></w:r>"


def order_of_word(content: bytes) -> list[str]:
    """Everything of a paragraph in its order, with the text of runs joined."""
    paragraph = docx.Document(io.BytesIO(content)).paragraphs[-1]._p
    order: list[str] = []
    for element in paragraph.iterdescendants():
        name = element.tag.partition("}")[2]
        if name in ("t", "delText"):
            text = element.text or ""
            if order and order[-1].startswith("="):
                order[-1] += text
            else:
                order.append(f"={text}")
        elif name not in ("r", "pPr", "jc"):
            order.append(name)
    return order


@pytest.mark.parametrize(
    ("opening", "closing", "names"),
    [
        (
            "<w:sdt><w:sdtPr><w:alias w:val='a'/></w:sdtPr><w:sdtContent>",
            "</w:sdtContent></w:sdt>",
            ["sdt", "sdtPr", "alias", "sdtContent"],
        ),
        ("<w:fldSimple w:instr='TITLE'>", "</w:fldSimple>", ["fldSimple"]),
        ("<w:bdo w:val='ltr'>", "</w:bdo>", ["bdo"]),
        ("<w:dir w:val='ltr'>", "</w:dir>", ["dir"]),
        (
            "<w:customXml w:element='a'><w:customXmlPr><w:placeholder w:val='b'/></w:customXmlPr>",
            "</w:customXml>",
            ["customXml", "customXmlPr", "placeholder"],
        ),
        (
            "<w:smartTag w:element='a'><w:smartTagPr/>",
            "</w:smartTag>",
            ["smartTag", "smartTagPr"],
        ),
        ("<w:hyperlink w:anchor='a'>", "</w:hyperlink>", ["hyperlink"]),
        ("<w:ins w:id='7' w:author='a'>", "</w:ins>", ["ins"]),
    ],
)
def test_text_in_a_container_of_word_is_translated_in_its_place(opening, closing, names) -> None:
    content = paragraph_of_word(
        f"{run_of_word('the big ')}{opening}{run_of_word('red dog')}{closing}{run_of_word(' runs')}"
    )
    assert parse_office(read_docx(content)[0], "en").pieces == ("the big red dog runs",)
    order = ["=the big ", *names, "=red dog runs"]
    assert order_of_word(content) == order
    after = shouted(read_docx, content)
    assert order_of_word(after) == [
        item.upper() if item.startswith("=") else item for item in order
    ]
    container = docx.Document(io.BytesIO(after)).paragraphs[-1]._p[2]
    assert container.tag.endswith("}" + names[0])
    assert "".join(text.text for text in container.iter(qn("w:t"))) == "RED DOG"
    before = docx.Document(io.BytesIO(content)).paragraphs[-1]._p[2]
    assert dict(container.attrib) == dict(before.attrib)


def test_deleted_text_of_word_stays_and_is_not_read() -> None:
    content = paragraph_of_word(
        f"{run_of_word('the red ')}<w:del w:id='1' w:author='a'><w:r><w:delText>big cat</w:delText>"
        f"</w:r></w:del>{run_of_word('dog')}"
    )
    assert parse_office(read_docx(content)[0], "en").pieces == ("the red dog",)
    assert order_of_word(shouted(read_docx, content)) == ["=THE RED ", "del", "=big catDOG"]


@pytest.mark.parametrize("name", ["tab", "br", "cr", "noBreakHyphen"])
def test_breaks_and_hyphens_of_word_keep_their_place_between_words(name: str) -> None:
    content = paragraph_of_word(f"<w:r><w:t>a cat</w:t><w:{name}/><w:t>dog runs</w:t></w:r>")
    assert order_of_word(shouted(read_docx, content)) == ["=A CAT", name, "=DOG RUNS"]


def test_a_soft_hyphen_does_not_divide_a_word_for_the_model() -> None:
    content = paragraph_of_word(
        "<w:r><w:t>An under</w:t><w:softHyphen/><w:t>standing. 12</w:t></w:r>"
    )
    text, write = read_docx(content)
    layout = parse_office(text, "en")
    assert layout.pieces == ("An understanding.",)
    assert layout.fill(layout.pieces) == text
    after = write(layout.fill(["Eine Verständigung."]))
    assert order_of_word(after) == ["=Eine Verständigung. 12"]
    only_number = write(layout.fill(layout.pieces) + " 3")
    assert order_of_word(only_number) == ["=An under", "softHyphen", "=standing. 12 3"]


@pytest.mark.parametrize(
    "kind", ["bookmark", "commentRange", "moveFromRange", "moveToRange", "perm"]
)
def test_a_range_of_word_marks_the_same_words_after_translation(kind: str) -> None:
    name = " w:name='n'" * (kind == "bookmark")
    start, end = f"<w:{kind}Start w:id='0'{name}/>", f"<w:{kind}End w:id='0'/>"
    before, words, after = map(run_of_word, ("the big ", "red", " dog"))
    content = paragraph_of_word(f"{before}{start}{words}{end}{after}")
    assert parse_office(read_docx(content)[0], "en").pieces == ("the big red dog",)
    text, write = read_docx(content)
    layout = parse_office(text, "en")
    links = [[(0, 0), (1, 1), (2, 3), (3, 2)]]
    changed = write(layout.fill(["le gros chien rouge"], links))
    assert order_of_word(changed) == ["=le gros chien ", f"{kind}Start", "=rouge", f"{kind}End"]
    # without words; and over the start or the end of a paragraph
    point = paragraph_of_word(f"{before}{start}{end}{words}")
    assert order_of_word(shouted(read_docx, point)) == [
        *("=THE BIG ", f"{kind}Start", f"{kind}End", "=RED"),
    ]
    for mark, name in ((start, f"{kind}Start"), (end, f"{kind}End")):
        alone = paragraph_of_word(f"{before}{mark}{words}")
        expected = ["=THE BIG ", name, "=RED"]
        if name.endswith("End"):
            expected = ["=THE BIG", name, "= RED"]
        assert order_of_word(shouted(read_docx, alone)) in (expected, ["=THE BIG ", name, "=RED"])


def test_ranges_of_word_that_overlap_are_there_once() -> None:
    marks = [f"<w:bookmarkStart w:id='{n}' w:name='n{n}'/>" for n in (0, 1)]
    marks += [f"<w:bookmarkEnd w:id='{n}'/>" for n in (0, 1)]
    runs = [run_of_word(f"{word} ") for word in ["the", "big", "red", "dog", "runs"]]
    content = paragraph_of_word("".join(a + b for a, b in zip(runs, [*marks, ""], strict=True)))
    paragraph = docx.Document(io.BytesIO(shouted(read_docx, content))).paragraphs[-1]
    assert paragraph.text.split() == ["THE", "BIG", "RED", "DOG", "RUNS"]
    ids = [
        (mark.tag.partition("}")[2], mark.get(qn("w:id")))
        for mark in paragraph._p
        if "bookmark" in mark.tag
    ]
    assert ids.index(("bookmarkStart", "0")) < ids.index(("bookmarkEnd", "0"))
    assert ids.index(("bookmarkStart", "1")) < ids.index(("bookmarkEnd", "1"))
    assert len(ids) == 4


def odt_of(*inner) -> bytes:
    """A document of OpenDocument with one paragraph."""
    document = OpenDocumentText()
    paragraph = P()
    for part in inner:
        if isinstance(part, str):
            paragraph.addText(part)
        else:
            paragraph.addElement(part)
    document.text.addElement(paragraph)
    return saved(document)


def annotation() -> Annotation:
    element = Annotation()
    element.setAttrNS(OFFICENS, "name", "n")  # as a keyword it would be draw:name
    return element


def odt_children(content: bytes) -> list[str]:
    (paragraph,) = load(io.BytesIO(content)).getElementsByType(P)
    return [
        str(node) if node.nodeType == node.TEXT_NODE else node.tagName
        for node in paragraph.childNodes
    ]


@pytest.mark.parametrize(
    ("inner", "pieces", "children"),
    [
        (("red", S(), "dog"), ("red dog",), ["RED DOG"]),
        (("red ", S(c=1), "dog"), ("red dog",), ["RED DOG"]),
        (("red", S(c=8), "dog"), ("red", "dog"), ["RED", "text:s", "DOG"]),
        ((S(c=4), "dog"), ("dog",), ["text:s", "DOG"]),
        ((S(), "dog"), ("dog",), ["text:s", "DOG"]),
        (("red", Tab(), "dog"), ("red", "dog"), ["RED", "text:tab", "DOG"]),
        (("red", LineBreak(), "dog"), ("red", "dog"), ["RED", "text:line-break", "DOG"]),
        (
            ("A dog. ", S(), "A cat."),
            ("A dog.", "A cat."),
            ["A DOG. ", "text:s", "A CAT."],
        ),
        (
            ("the ", BookmarkStart(name="n"), "red", BookmarkEnd(name="n"), " dog"),
            ("the red dog",),
            ["THE ", "text:bookmark-start", "RED", "text:bookmark-end", " DOG"],
        ),
        (
            ("the ", Bookmark(name="n"), "dog"),
            ("the dog",),
            ["THE ", "text:bookmark", "DOG"],
        ),
    ],
)
def test_blanks_and_marks_of_opendocument_separate_words(inner, pieces, children) -> None:
    content = odt_of(*inner)
    assert parse_office(read_odt(content)[0], "en").pieces == pieces
    assert odt_children(shouted(read_odt, content)) == children


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (BookmarkStart(name="n"), BookmarkEnd(name="n")),
        (annotation(), AnnotationEnd(name="n")),
        (ChangeStart(changeid="n"), ChangeEnd(changeid="n")),
    ],
)
def test_a_range_of_opendocument_marks_the_same_words_after_translation(start, end) -> None:
    text, write = read_odt(odt_of("The ", start, "red", end, " dog"))
    layout = parse_office(text, "en")
    assert layout.pieces == ("The red dog",)
    changed = write(layout.fill(["Le chien rouge"], [[(0, 0), (1, 2), (2, 1)]]))
    assert odt_children(changed) == ["Le chien ", start.tagName, "rouge", end.tagName]


def test_a_comment_of_opendocument_without_an_end_stays_after_its_word() -> None:
    text, write = read_odt(odt_of("The red", annotation(), " dog"))
    changed = write(parse_office(text, "en").fill(["Le chien rouge"], [[(0, 0), (1, 2), (2, 1)]]))
    assert odt_children(changed) == ["Le chien rouge", "office:annotation"]


def test_deleted_text_of_opendocument_stays() -> None:
    document = OpenDocumentText()
    changes = TrackedChanges()
    region = ChangedRegion(check_grammar=False)
    deletion = Deletion()
    deletion.addElement(P(text="the old dog"))
    region.addElement(deletion)
    changes.addElement(region)
    document.text.addElement(changes)
    document.text.addElement(P(text="the new dog"))
    content = saved(document)
    assert parse_office(read_odt(content)[0], "en").pieces == ("the new dog",)
    texts = load(io.BytesIO(shouted(read_odt, content))).getElementsByType(P)
    assert [*map(teletype.extractText, texts)] == ["the old dog", "THE NEW DOG"]


LAUGHS = (
    b"<!DOCTYPE a [<!ENTITY a0 'lol'>"
    + b"".join(b"<!ENTITY a%d '%s'>" % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 10))
    + b"]><a>&a9;</a>"
)
OUTSIDE = b"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"no archive", "must be a complete zip archive"),
        (b"", "must be a complete zip archive"),
        (word_document()[:-200], "must be a complete zip archive"),
        (packed({"word/document.xml": LAUGHS}), "“word/document.xml” does"),
        (packed({"word/document.xml": OUTSIDE}), "“word/document.xml” does"),
        (packed({"word/document.xml": b"<a/>"}), "must be in Word's default format"),
        (packed({"word/document.xml": b"<a>"}), "must hold well-formed XML"),
        (packed({"word/document.xml": b"<a>" * 9_000}), "must hold well-formed XML"),
        (
            packed({"word/document.xml": b" " * (1 << 25)}),
            "is larger; split it into smaller documents",
        ),
        (packed({"word/media/a.bin": bytes(1 << 27)}), "it holds more when unpacked"),
        (packed({f"word/{n}": b"" for n in range(6_000)}), "at most 5,000 members"),
        (packed({"../../etc/passwd": b"x"}), "but one name is different"),
        (packed({"/etc/passwd": b"x"}), "but one name is different"),
        (packed({"word/vbaProject.bin": b"x"}), "must not contain macros"),
        (packed({}, flag=1), "it is encrypted"),
        (open_document(), "must hold word/document.xml"),
    ],
)
def test_hostile_documents_are_refused_in_a_sentence(content: bytes, told: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(TextError) as caught:
            read_docx(content)
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_macros_and_passwords_of_opendocument_are_refused() -> None:
    for name, content, told in (
        ("Basic/Standard/a.xml", b"x", "must not contain macros"),
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
