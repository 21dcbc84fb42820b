import lzma
import re
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.dataset.fake_sgml import FakeSGMLDataset
from sacrebleu.dataset.wmt_xml import WMTXMLDataset

from heedful.errors import TextError
from heedful.text.corpus import Corpus, read_lines
from heedful.text.file_formats import TextSource, read_rows, segment_numbers
from heedful.text.wmt import read_segments
from tests.support.wmt import write_xml


def segments(text: str) -> list[str]:
    return [segment for _, segment in read_segments(text.split("\n"), "set.sgm")]


def refused(text: str) -> str:
    with pytest.raises(TextError) as caught:
        segments(text)
    assert "\n" not in str(caught.value)
    assert "set.sgm" in str(caught.value)
    return str(caught.value)


def as_sgm(documents: list[list[str]], kind: str = "src") -> str:
    """A test set as WMT wrote them."""
    parts = [f'<{kind}set setid="newstest2014" srclang="any">']
    for number, document in enumerate(documents):
        parts.append(f'<doc sysid="ref" docid="{number}-bbc" genre="news" origlang="en">\n<p>')
        parts += [f'<seg id="{n}">{text}</seg>' for n, text in enumerate(document, start=1)]
        parts.append("</p>\n</doc>")
    return "\n".join([*parts, f"</{kind}set>", ""])


def with_single_spaces(line: str) -> str:
    return re.sub("[ \t]+", " ", line).strip(" ")


def in_documents(lines: list[str], size: int = 30) -> list[list[str]]:
    return [lines[start : start + size] for start in range(0, len(lines), size)]


def test_a_test_set_that_is_no_xml() -> None:
    text = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE srcset SYSTEM "x.dtd">
<!-- <seg id="1">not this</seg>
     <seg id="2">nor this</seg> --><srcset setid="s" srclang=any>
<DOC genre="news" docid='it"s' origlang="en" note="a > b">
<hl><SEG id=1>Less < more & AT&T, a<b>c</b></SEG></hl>
<p> <seg
  lang="en"
  id = '2' > two
   lines </Seg
> <seg id="3"/><seg id="4"></seg>
<seg>&lt;&amp;amp;&gt; &quot;x&apos;s&quot; &#233;&#xE9; &eacute; &#0; &#xD800; &#1114112;
a&#10;b</seg></DOC> stray <seg id="1">a\u00a0b\u2028c</seg> </seg> <segment id="9">none</segment>
</srcset>"""
    assert segments(text) == [
        "Less < more & AT&T, a<b>c</b>",
        "two lines",
        "",
        "",
        '<&amp;> "x\'s" éé &eacute; &#0; &#xD800; &#1114112; a b',
        "a\u00a0b\u2028c",
    ]


def test_many_segments_in_one_line() -> None:
    text = as_sgm([["a", "b"], ["c"]]).replace("\n", "")
    assert segments(text) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds none"),
        ("just words\n<doc docid='1'></doc>", "holds none"),
        ('<doc>\n<seg id="1">a\n<seg id="2">b</seg></doc>', "every segment, but one that begins"),
        ('<doc>\n<seg id="1">a\n</doc>', "in line 2 is still open in line 3"),
        ('<doc>\n<seg id="1">a\n', "in line 2 is still open in line 3"),
        ('<doc>\n<seg id="1">a</refset>', "in line 2 is still open in line 2"),
        ('<doc>\n<seg id="1\n>a</seg>\n<seg id="2">b</seg>', "every tag, but one that begins in"),
        ('<doc docid="a>\n<seg id="1">a</seg>', "line 1"),
        ("<doc " + "\n" * 50 + '><seg id="1">a</seg>', "line 1"),
        ('<!-- a\n<seg id="1">b</seg>', "every comment"),
        (
            '<doc><seg id="2">b</seg>\n<seg id="1">a</seg>',
            "in line 2 segment 1 comes after segment 2",
        ),
    ],
)
def test_what_is_not_closed_or_not_in_order_is_said(text: str, said: str) -> None:
    assert said in refused(text)


def test_numbers_start_again_with_every_document() -> None:
    assert segments(as_sgm([["a", "b"], ["c"], ["d", "e", "f"]])) == list("abcdef")


words = st.text(st.characters(codec="utf-8", exclude_characters=" \t\r\n\0\ufeff"))
sentence = st.lists(words).map(lambda found: " ".join(filter(None, found)))


@given(st.lists(st.lists(sentence, min_size=1, max_size=4), min_size=1, max_size=3))
def test_segments_come_back_as_they_were_written(tmp_path_factory, documents) -> None:
    path = tmp_path_factory.mktemp("sgm") / "set-src.en.sgm"
    escaped = [[escape(text) for text in document] for document in documents]
    path.write_bytes(as_sgm(escaped).encode())
    flat = [text for document in documents for text in document]
    assert list(read_lines(TextSource(path))) == flat
    path.write_bytes(as_sgm(escaped).replace("</seg>", "\r\n </SEG>").encode())
    assert list(read_lines(TextSource(path))) == flat


@pytest.fixture(scope="module")
def newstest(corpora: Path) -> dict[str, list[str]]:
    texts = {}
    for language in ("en", "de"):
        with lzma.open(corpora / f"wmt-newstest/en-de/newstest2014.{language}.xz", "rt") as file:
            texts[language] = file.read().split("\n")[:-1]
    return texts


@pytest.mark.parametrize("escaped", [True, False])
def test_newstest2014_is_read_as_sacrebleu_reads_it(tmp_path: Path, newstest, escaped) -> None:
    write = escape if escaped else str
    for side, language in (("src", "en"), ("ref", "de")):
        path = tmp_path / f"newstest2014-ende-{side}.{language}.sgm"
        documents = in_documents([write(line) for line in newstest[language]])
        path.write_text(as_sgm(documents, side), encoding="utf-8")
        theirs = tmp_path / "theirs"
        FakeSGMLDataset("newstest2014")._convert_format(str(path), str(theirs))
        ours = list(read_lines(TextSource(path)))
        assert len(ours) == 3003
        # Theirs keeps the references to characters and takes every Unicode space for a space.
        assert [write(" ".join(line.split())) for line in ours] == theirs.read_text(
            encoding="utf-8"
        ).split("\n")[:-1]
        # The text itself is known, too.
        assert ours == [with_single_spaces(line) for line in newstest[language]]


def test_both_files_of_a_test_set_make_pairs(tmp_path: Path, newstest) -> None:
    sides = []
    for side, language in (("src", "en"), ("ref", "de")):
        path = tmp_path / f"set-{side}.{language}.sgm"
        documents = in_documents([escape(line) for line in newstest[language]])
        path.write_text(as_sgm(documents, side), encoding="utf-8")
        sides.append(path)
    pairs = list(Corpus((sides[0],), (sides[1],)).pairs())
    assert pairs == list(zip(newstest["en"], newstest["de"], strict=True))


def test_segments_are_not_held_together() -> None:
    """A segment is available as soon as its line is, and no line is read before it is needed."""
    lines = iter(as_sgm([["a", "b"], ["c"]]).split("\n"))
    found = read_segments(lines, "set.sgm")
    assert next(found)[1] == "a"
    assert next(lines) == '<seg id="2">b</seg>'
    assert [text for _, text in found] == ["c"]


def test_newstest2021_is_read_as_sacrebleu_reads_it(tmp_path: Path, corpora: Path) -> None:
    names = {"src": "src.en", "ref:A": "ref.A.de", "ref:C": "ref.C.de", "hyp:UEdin": "hyp.UEdin.de"}
    texts = {}
    for side, name in names.items():
        with lzma.open(corpora / f"fixtures-bleu/wmt21-en-de/newstest2021.en-de.{name}.xz") as file:
            texts[side] = file.read().decode().split("\n")[:-1]
    documents = [
        dict(zip(texts, parts, strict=True))
        for parts in zip(*map(in_documents, texts.values()), strict=True)
    ]
    path = write_xml(tmp_path / "set.xml", *documents, suites=2)
    theirs = WMTXMLDataset._unwrap_wmt21_or_later(str(path))
    theirs["hyp:UEdin"] = theirs.pop("UEdin")
    for side, lines in texts.items():
        ours = list(read_lines(TextSource(path, side)))
        assert len(ours) == 942
        assert ours == [with_single_spaces(line) for line in lines[60:]]
        clean = WMTXMLDataset._clean
        assert [clean(line) for line in ours] == [clean(line) for line in theirs[side]]


def test_every_side_has_a_line_for_every_segment_of_the_source(tmp_path: Path) -> None:
    path = write_xml(
        tmp_path / "set.xml",
        {"src": ["a", "b"], "ref:A": ["A1", ""], "ref:B": ["B1", "B2"]},
        {"ref:A": ["A3"], "hyp:x:1": ["x3"], "src": ["c"]},
    )
    sides = ["src", "ref:A", "ref:B", "hyp:x:1", "hyp"]
    rows = [("a", "A1", "B1", "", ""), ("b", "", "B2", "", ""), ("c", "A3", "", "x3", "x3")]
    assert list(read_rows(path, sides)) == rows
    for column, side in enumerate(sides):
        assert list(read_lines(TextSource(path, side))) == [row[column] for row in rows]
    pairs = list(Corpus((TextSource(path, "src"),), (TextSource(path, "ref:B"),)).pairs())
    assert pairs == [("a", "B1"), ("b", "B2"), ("c", "")]


def test_sides_that_are_not_there_or_not_clear_are_named(tmp_path: Path) -> None:
    path = write_xml(tmp_path / "set.xml", {"src": ["a"], "ref:A": ["b"], "ref:B": ["c"]})
    for side, said in (
        ("ref:C", "the side “ref:C” of a test set, but it has only “src”, “ref:A”, “ref:B”"),
        ("hyp", "“hyp”"),
        ("ref", "holds “ref:A”, “ref:B”; choose one of these"),
    ):
        with pytest.raises(TextError) as caught:
            list(read_lines(TextSource(path, side)))
        assert said in str(caught.value)
        assert str(path) in str(caught.value)
    path.write_text("<html><p>words</p></html>")
    with pytest.raises(TextError, match="but no document of it has text"):
        list(read_lines(TextSource(path, "src")))
    one = write_xml(tmp_path / "one.xml", {"src": ["a"], "ref": ["b"]})
    assert list(read_lines(TextSource(one, "ref"))) == ["b"]


def test_each_line_has_its_document_and_number(tmp_path: Path) -> None:
    path = write_xml(
        tmp_path / "set.xml",
        {"src": ["suite"], "ref": ["x"]},
        {"ref": ["A1", "A2"], "src": ["a", "b"]},
        {"src": ["c"], "ref": [""]},
        suites=1,
    )
    numbers = [("1", "1"), ("1", "2"), ("2", "1")]
    assert segment_numbers(TextSource(path, "ref")) == numbers
    assert len(list(read_lines(TextSource(path, "ref")))) == len(numbers)
    path.write_text(path.read_text(encoding="utf-8").replace('id="2"', 'id="1"'), encoding="utf-8")
    assert segment_numbers(TextSource(path, "ref")) is None
    sgm = tmp_path / "set.sgm"
    sgm.write_text(as_sgm([["a", "b"], ["c"]]), encoding="utf-8")
    expected = [("0-bbc", "1"), ("0-bbc", "2"), ("1-bbc", "1")]
    assert segment_numbers(TextSource(sgm)) == expected
    sgm.write_text(as_sgm([["a"], ["b"]]).replace("docid=", "doc="), encoding="utf-8")
    assert segment_numbers(TextSource(sgm)) is None
    assert segment_numbers(TextSource(tmp_path / "plain.txt")) is None


def test_documents_and_sides_inside_others_are_refused(tmp_path: Path) -> None:
    path = write_xml(tmp_path / "set.xml", {"src": ["a"], "ref": ["b"]})
    content = path.read_text(encoding="utf-8")
    for tag in ("doc", "src", "ref"):
        opened = re.search(f"<{tag}[^>]*>", content)[0]
        path.write_text(
            content.replace(opened, opened + "\n" + opened, 1).replace(
                f"</{tag}>", f"</{tag}></{tag}>", 1
            ),
            encoding="utf-8",
        )
        with pytest.raises(TextError, match=f"must close each <{tag}> before the next begins, but"):
            list(read_lines(TextSource(path, "src")))


def test_a_segment_of_no_side_is_passed_over(tmp_path: Path) -> None:
    path = write_xml(tmp_path / "set.xml", {"src": ["a"], "ref": ["b"]})
    content = path.read_text(encoding="utf-8")
    path.write_text(content.replace("</doc>", '<seg id="9">x</seg></doc>'), encoding="utf-8")
    assert list(read_rows(path, ["src", "ref"])) == [("a", "b")]
