"""HTML: a tag that held a word holds a word; white space, comments and empty tags stay."""

import re

import pytest

from heedful.serve.documents.html_document import Markup

WORDS = {"a": "un", "small": "petit", "black": "noir", "cat": "chat", "sleeps": "dort"}
ORDER = {"a": 0, "small": 1, "black": 3, "cat": 2, "sleeps": 4}


def french(piece):
    """Translate word by word; the second adjective goes behind its noun."""
    words = piece.rstrip(".").split()
    order = sorted(range(len(words)), key=lambda place: ORDER[words[place]])
    return " ".join(WORDS[words[place]] for place in order), [
        (source, target) for target, source in enumerate(order)
    ]


def translated(page):
    markup = Markup.parse(page, "en")
    pairs = [french(piece) for piece in markup.pieces]
    return markup.fill([text for text, _ in pairs], [links for _, links in pairs])


@pytest.mark.parametrize(
    ("page", "filled"),
    [
        ("<p>a small black <i>cat</i></p>", "<p>un petit <i>chat</i> noir</p>"),
        ("<p>a small <i>black</i> cat</p>", "<p>un petit chat <i>noir</i></p>"),
        ("<p>a <i>small black</i> cat</p>", "<p>un <i>petit chat noir</i></p>"),
        (
            "<p><b>a</b> small <i><u>black</u> cat</i></p>",
            "<p><b>un</b> petit <i>chat <u>noir</u></i></p>",
        ),
        ("<p><b>a</b></p>", "<p><b>un</b></p>"),
        ("<p>a cat <i>sleeps</i>", "<p>un chat <i>dort</i>"),
        ("a small <b>black <i>cat</i></b>", "un petit <b><i>chat</i> noir</b>"),
    ],
)
def test_a_tag_goes_with_its_words(page, filled):
    assert translated(page) == filled


@pytest.mark.parametrize(
    "page",
    [
        "<p>\n\t\ta small\n\t\tblack cat\n\t</p>",
        "<p>a&nbsp;small&nbsp;black cat</p>",
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"/><title>a cat</title></html>',
        '<!-- wp:paragraph {"x":1} --><p>a small black cat</p><!-- /wp:paragraph -->',
        "<p>a small <u></u>black cat</p>",
        '<a href="#"><em>\n <span>\n  a small\n </span>\n</em>\n<em>\n <span>\n'
        "  black cat\n </span>\n</em></a>",
        '<b id="1">a<i id="2"> small black</i></b> <i id="3">cat</i>',
        '<p title="a > b">a small black cat</p>',
        "<p>a cat<br>a cat sleeps</p>",
    ],
)
def test_every_tag_stays_and_none_becomes_empty(page):
    filled = translated(page)
    tags = sorted(re.findall(r"<[^>]*>", page))
    assert sorted(re.findall(r"<[^>]*>", filled)) == tags
    empty = r"<(i|b|em|span|a|p|title)( [^>]*)?>\s*</\1>"
    assert not re.search(empty, filled)
    assert "chat" in filled
