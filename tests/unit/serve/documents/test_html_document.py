"""HTML keeps its markup: nothing is lost, nothing is added, and tags go where their words went."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from heedful.serve.documents.html_document import Markup, visible_text
from heedful.serve.documents.html_lexer import tokenize
from tests.support.growth import assert_grows_linearly

WRITTEN = """
Hello |big world|. |Dr. Smith| |&amp;|&nbsp;|&eacute|&#x41;|&notit;|<b>|</b>|<i class='a b'>|</i>
<p>|</p>|<br>|<br/>|<img src=x alt='<'>|<a href="x>y" title='"'>|</a>|<div translate=no>|</div>
<sub>|<span class=notranslate>|</span>|<code>|</code>|<pre>|</pre>|<ul><li>|<li>|</ul>|<td>|<table>
</sub>|<script>|</script>|if (a<b) x("<p>")|<style>|</style>|<!--|-->|<!>|<![CDATA[|]]>|<svg>
</svg>|<math>
<foreignObject>|<title>|</title>|<textarea>|</textarea>|<|>|</|<a title="|'|"|=|<3|</3>|<?php|<B>
<noscript>|</noscript>|世界。|<p translate=NO>|<x-y>|</x-y>|<plaintext>
"""
NUMBERS = st.integers(0, 0x2FF) | st.integers(0, 0x120000)
REFERENCES = st.builds(
    "&#{}{}{}".format, st.sampled_from(["", "0"]), NUMBERS, st.sampled_from(["", ";"])
) | st.builds("&#x{:X}{}".format, NUMBERS, st.sampled_from(["", ";"]))
BITS = REFERENCES | st.sampled_from(
    [*WRITTEN.strip().replace("\n", "|").split("|"), "\n", "\x00", "\ud800", f"&#{'9' * 5000};"]
)
PAGES = st.lists(BITS, max_size=25).map("".join)
HOSTILE = [
    "<script>alert(1)</script>",
    "</title><img src=x onerror=alert(1)>",
    "-->",
    '" onclick="x',
    "&lt;",
]
HOSTILE += ["", " ", "]]><b>", "</p><p>", "Hallo große Welt", "</textarea>", "&amp;amp;"]


@given(PAGES)
def test_tokens_hold_every_character(page):
    assert "".join(token.raw for token in tokenize(page)) == page


@given(st.one_of(PAGES, st.text()))
def test_untranslated_pieces_give_the_page_back(page):
    markup = Markup.parse(page, "en")
    assert markup.fill(markup.pieces) == page
    assert len(markup.linked) == len(markup.pieces)
    for piece in markup.pieces:
        assert piece == " ".join(piece.split())


KEPT = st.sampled_from([*WRITTEN.strip().split("|")[:9], "<code>x y, z</code>", "<kbd>Ctrl</kbd> "])


@given(PAGES | st.lists(KEPT, max_size=12).map("".join), st.integers(1, 12))
def test_a_sentence_is_cut_until_it_fits(page, most):
    markup = Markup.parse(page, "en", lambda piece: len(piece) <= most)
    assert markup.fill(markup.pieces) == page
    assert all(0 < len(piece.strip()) == len(piece) <= most for piece in markup.pieces)


def test_the_words_of_a_kept_element_count():
    page = "<p>Please press <kbd>Ctrl C</kbd> to copy it</p>"
    markup = Markup.parse(page, "en", lambda piece: "Ctrl" not in piece)
    assert markup.pieces == ("Please press", "to", "copy it")
    filled = markup.fill(["Bitte", "zum", "Kopieren"])
    assert filled == "<p>Bitte <kbd>Ctrl C</kbd> zum Kopieren</p>"


def elements(page):
    """The result of a browser's parser: elements with attributes, and hidden content."""
    tree = LexborHTMLParser(page.encode("utf-8", "replace").decode().replace("\x00", ""))
    found = set()
    for node in tree.root.traverse(include_text=False):
        attributes = tuple(sorted((name, value or "") for name, value in node.attributes.items()))
        found.add((node.tag, attributes))
        if node.tag in ("script", "style"):
            found.add((node.tag, node.text()))
    return found


@given(PAGES, st.data())
def test_a_translation_is_only_text(page, data):
    markup = Markup.parse(page, "en")
    texts = data.draw(st.lists(st.sampled_from(HOSTILE), min_size=len(markup.pieces)))
    texts = texts[: len(markup.pieces)]
    pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=9)
    links = [data.draw(st.none() | pairs) for _ in texts]
    assert elements(markup.fill(texts, links)) <= elements(page)


@given(PAGES, st.data())
def test_every_tag_is_there_once(page, data):
    markup = Markup.parse(page, "en")
    pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=9)
    links = [data.draw(st.none() | pairs) for _ in markup.pieces]
    filled = markup.fill(["Hallo große schöne Welt." for _ in markup.pieces], links)
    # Their order may change, their number not.
    assert sorted(tags(filled)) == sorted(tags(page))


def tags(page):
    """All that is not text."""
    return [token.raw for token in tokenize(page) if token.name]


@pytest.mark.parametrize(
    ("page", "piece", "translation", "links", "filled"),
    [
        (
            "<p>The <b>red</b> dog.</p>",
            "The red dog.",
            "Le chien rouge.",
            [(0, 0), (1, 2), (2, 1)],
            "<p>Le chien <b>rouge</b>.</p>",
        ),
        (
            'I <a href="x?a=1&amp;b">live <i>here</i></a> &amp; now',
            "I live here & now",
            "Hier lebe ich & jetzt",
            [(0, 2), (1, 1), (2, 0), (3, 3), (4, 4)],
            '<a href="x?a=1&amp;b"><i>Hier</i> lebe</a> ich &amp; jetzt',
        ),
        (
            "Hello <b>world</b>!",
            "Hello world!",
            "Bonjour le monde !",
            [(0, 0), (1, 1), (1, 2), (1, 3)],
            "Bonjour <b>le monde</b> !",
        ),
        ("H<sub>2</sub>O is good", "H2O is good", "H2O ist gut", None, "H<sub>2</sub>O ist gut"),
        (
            "Run <code>ls -l</code>.",
            "Run ls -l.",
            "Führe ls -l aus.",
            None,
            "Führe <code>ls -l</code> aus.",
        ),
        (
            '<span translate="no">The Who</span> play',
            "The Who play",
            "Es spielen Die Wer",
            [(0, 2), (1, 3), (2, 1)],
            'Es spielen <span translate="no">The Who</span>',
        ),
        (
            "See <img src=a> this <!-- c --> dog",
            "See this dog",
            "Sieh den Hund",
            [(0, 0), (1, 1), (2, 2)],
            "Sieh <img src=a> den <!-- c --> Hund",
        ),
        *(
            (page, "The red dog.", "Le chien rouge.", [(0, 0), (1, 2), (2, 1)], filled)
            for page, filled in (
                ("The <!--a-->red<!--b--> dog.", "Le chien <!--a-->rouge<!--b-->."),
                ("The <!--a--> red <!--b--> dog.", "Le chien <!--a--> <!--b--> rouge."),
                ("The <img src=a> red <img src=b> dog.", "Le <img src=b> chien <img src=a> rouge."),
            )
        ),
        ("<b>a dog", "a dog", "ein Hund", None, "<b>ein Hund"),
        ("a dog</b>", "a dog", "ein Hund", None, "ein Hund</b>"),
        (
            "The <b>red <i>dog</b> runs</i> on",
            "The red dog runs on",
            "A B C D E",
            [(k, k) for k in range(5)],
            "A <b>B <i>C</b> D</i> E",
        ),
        ("Say <b>hello</b> now", "Say hello now", "1 < 2 & <b>", None, None),
        ("a <b>world</b> here", "a world here", "", [], "<b></b>"),
        ("one\n   <b> two </b>\n three", "one two three", "A B C", None, "A <b> B</b>\n  C"),
        ("My <b>big</b> dog", "My big dog", "私の大きな犬", [(0, 0)], None),
        # References to characters that a page does not show.
        ("A big&#11;dog", "A big dog", "Ein Hund", [(0, 0), (2, 1)], "Ein &#11;Hund"),
        ("A big&#x0B; dog", "A big dog", "Ein Hund", [(0, 0), (2, 1)], "Ein &#x0B;Hund"),
        ("A dog&#7; &#xFDD1;.", "A dog.", "Ein Hund.", None, "Ein Hund&#7; &#xFDD1;."),
        ("bad&#31;ger &#x10FFFE;", "badger", "Dachs", None, "&#31;Dachs &#x10FFFE;"),
        ("a <code>b&#11;c&#2;</code>", "a b c", "ein b c", None, "ein <code>b&#11;c&#2;</code>"),
        # Numbers beyond Unicode, with more digits than Python reads.
        (f"a &#{'7' * 4400};", "a \ufffd", "ein \ufffd", None, "ein \ufffd"),
        (f"a &#{'0' * 4400}98", "a b", "ein b", None, "ein b"),
    ],
)
def test_tags_follow_their_words(page, piece, translation, links, filled):
    markup = Markup.parse(page, "en")
    assert markup.pieces == (piece,)
    found = markup.fill([translation], [links])
    assert sorted(tags(found)) == sorted(tags(page))
    assert filled is None or found == filled


@pytest.mark.parametrize(
    ("page", "pieces"),
    [
        ("<p>One <b>two. Three</b> four.</p>", ["One two.", "Three four."]),
        ("<p>One<br>two<p>three", ["One", "two", "three"]),
        ("<ul><li>One<li translate=no>Two<li>Three</ul>", ["One", "Three"]),
        ("<table><tr><td translate=no>One<td>Two<tr><td>Three</table>", ["Two", "Three"]),
        ("<div translate=no>One<div>two</div>three</div>Four", ["Four"]),
        ("<script>var a = '</p>x';</script>One<style>a{}</style>", ["One"]),
        ("<pre>One\n two</pre>Three<textarea>four</textarea>", ["Three"]),
        ("<p>One<!-- two --> three</p><!-- four -->", ["One three"]),
        ("<title>One &amp; two</title><svg><text>three</text></svg>Four", ["One & two", "Four"]),
        ("<p class=notranslate>One</p><p>12:30</p><p>&nbsp;</p>", []),
        (
            "<p>Some <code>a very long line of code that nobody should translate ever</code>.",
            ["Some."],
        ),
        ("caf&eacute; &lt;b&gt; x", ["café <b> x"]),
        ("soft&shy;hyphen", ["softhyphen"]),
        ('One <a title="never closed. Two', ["One"]),
        ("", []),
    ],
)
def test_what_is_translated(page, pieces):
    markup = Markup.parse(page, "en")
    assert list(markup.pieces) == pieces
    assert markup.fill(markup.pieces) == page


@pytest.mark.parametrize(
    ("first", "repeated", "last"),
    [
        ("", "<b>a</b> ", ""),
        ("", "<b>a ", ""),
        ("", "<b>a ", "</b>"),
        ("a", "<b>", ""),
        ("", "a </b>", ""),
        ("", "<svg>", "</x>"),
        ("<svg>", "<a>", "</q>"),
        ("", "<svg><desc><p>x</p>", ""),
        ("<li><ul>", "<b>", "<li></li>"),
        ("<p><button>", "<b>", "<div></div>"),
        ("", "<li>", "</p>"),
        ("", "<", ""),
        ("", "&amp", ""),
        ("", '<a b="', ""),
        ("", "<p translate=no>", ""),
        ("", "<!--", ""),
        ("", "x<code>y</code>", ""),
        ("", "x <code>1</code> ", ""),
    ],
)
def test_time_grows_with_the_length_alone(first, repeated, last):
    def parse_and_fill(count):
        page = first + repeated * count + last * count
        markup = Markup.parse(page, "en")
        assert markup.fill(markup.pieces) == page
        filled = markup.fill([piece.upper() for piece in markup.pieces])
        assert sorted(tags(filled)) == sorted(tags(page))

    assert_grows_linearly(parse_and_fill, 500)


def test_many_tags_find_their_words_in_time():
    def fill(count):
        page = f"<p>{'<b>w</b> ' * 140}{'bc ' * 200}</p>" * count
        markup = Markup.parse(page, "en")
        texts = ["zz " * len(piece.split()) for piece in markup.pieces]
        links = [[(k, k) for k in range(len(text.split()))] for text in texts]
        assert markup.fill(texts, links).count("<b>zz</b>") == 140 * count

    assert_grows_linearly(fill, 2)


def test_kept_elements_among_too_many_tags_are_not_doubled_and_divide_no_word():
    page = " ".join(f"<i><b>red</b></i> <code>x{k}</code>" for k in range(80))
    markup = Markup.parse(page, "en")
    translation = markup.pieces[0].replace("red", "rouge")
    filled = markup.fill([translation])
    assert sorted(tags(filled)) == sorted(tags(page))
    page = page.replace("red", "rouge")
    assert re.sub("</?[ib]>", "", filled) == re.sub("</?[ib]>", "", page)
    changed = translation.replace("x", "y")
    filled = markup.fill([changed])
    assert re.sub("<code>.*?</code>|<.*?>", "", filled).split() == changed.split()


def test_a_page_shows_its_text_alone():
    page = "<div class='the big house'>Das <b>rote</b>\n Haus&nbsp;!<pre>code</pre><p>Ja</div>"
    assert visible_text(page) == "Das rote Haus !\nJa"
