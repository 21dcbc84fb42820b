"""Markdown keeps its blocks, code and addresses; translations are only ever text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from heedful.serve.documents.markdown_document import parse_markdown
from tests.support.growth import assert_grows_linearly

PAGE = """---
title: not text
---
# The *big* dog

Some **bold [link](a.md "t")** and `code x`,
which goes on.

> A quote with under_score and 2 * 3
> goes on.\\
> Last line.

1. First ~~old~~ item
   - [ ] a task, ![a picture](b.png)

```py
code here
```

| a dog | b |
|:--|--:|
| the cat | `x` |

    indented code

[ref]: http://x.y
A [ref] stays. <b>html</b> <https://e.org/a> https://e.org/b?c=1. {{name}} &amp; \\* end[^1]

[^1]: A note.

<div>
block
</div>
"""


def structure(text: str) -> list[tuple[str, ...]]:
    """The blocks and marks of a text in order, without its words."""
    found = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        inline = [
            child
            for child in token.children or ()
            if child.type not in ("text", "softbreak", "text_special")
        ]
        found.append(
            (token.type, token.markup, "" if token.children is not None else token.content.lower())
        )
        found += sorted((child.type, str(child.attrs), child.markup) for child in inline)
    return found


def test_a_page_is_read_by_its_blocks() -> None:
    markup = parse_markdown(PAGE, "en")
    assert markup.pieces[:6] == (
        "The big dog",
        "Some bold link and code x, which goes on.",
        "A quote with under_score and 2 * 3 goes on.",
        "Last line.",
        "First old item",
        "a task, a picture",
    )
    assert not any("code here" in piece for piece in markup.pieces)
    assert markup.pieces[-1] == "block"
    assert markup.fill(markup.pieces) == PAGE


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_translation_has_the_same_structure(line_end: str) -> None:
    page = PAGE.replace("\n", line_end)
    markup = parse_markdown(page, "en")
    assert markup.fill(markup.pieces) == page
    links = [[(place, place) for place in range(len(piece.split()))] for piece in markup.pieces]
    filled = markup.fill([piece.upper() for piece in markup.pieces], links)
    assert structure(filled) == structure(page)
    assert '**BOLD [LINK](a.md "t")** AND `code x`' in filled
    for untouched in ("https://e.org/b?c=1", "{{name}}", "[ref] STAYS", "<b>HTML</b>", "[^1]"):
        assert untouched in filled


def test_a_translation_is_never_read_as_markup() -> None:
    hostile = "*a* _b_ `c` [d](e) <script> | # f"
    filled = parse_markdown("A word.\n\n| x | a dog |\n|--|--|\n", "en").fill(
        [hostile] * 2 + ["1. g"]
    )
    assert structure(filled) == structure("A word.\n\n| x | a dog |\n|--|--|\n")
    for start in ("# a", "- a", "1. a", "> a", "--- a", "+ a"):
        assert structure(parse_markdown("A word", "en").fill([start])) == structure("A word")


@pytest.mark.parametrize(
    ("page", "pieces", "filled"),
    [
        (
            "<details>\n<summary>The big dog</summary>\n\nA *cat*.\n\n</details>\n",
            ("The big dog", "A cat."),
            "<details>\n<summary>THE BIG DOG</summary>\n\nA *CAT*.\n\n</details>\n",
        ),
        (
            '<div title="a b">\n <b>A red dog</b> runs\n there.\n <pre>code x</pre>\n</div>\n',
            ("A red dog runs there.",),
            '<div title="a b">\n <b>A RED DOG</b> RUNS THERE.\n <pre>code x</pre>\n</div>\n',
        ),
        ("<!-- a note -->\n\na\n", ("a",), "<!-- a note -->\n\nA\n"),
        ("<script>\nvar a\n</script>\n\na\n", ("a",), "<script>\nvar a\n</script>\n\nA\n"),
        ("- a\n\n  <p>a dog</p>\n", ("a", "a dog"), "- A\n\n  <p>A DOG</p>\n"),
        ("> <p>a dog</p>\n", ("a dog",), "> <p>A DOG</p>\n"),
        (
            "> <div\n> id=x>\n> a <b>red\n> dog</b>\n> </div>\n> a cat\n\nend\n",
            ("a red dog", "a cat", "end"),
            "> <div\n> id=x>\n> A <b>RED DOG</b>\n> </div>\n> A CAT\n\nEND\n",
        ),
        (
            "1. a\n\n   > <p>a dog\n   > <i\n   >  id=x>runs</i></p>\n   > <hr>\n",
            ("a", "a dog runs"),
            "1. A\n\n   > <p>A DOG <i\n   >  id=x>RUNS</i></p>\n   > <hr>\n",
        ),
        (
            "| a \\| dog | b |\n|--|--|\n| the `x\\|y` cat | red \\| dog |\n| a\\| | b |\n",
            ("a | dog", "b", "the x\\|y cat", "red | dog", "a|", "b"),
            "| A \\| DOG | B |\n|--|--|\n| THE `x\\|y` CAT | RED \\| DOG |\n| A\\| | B |\n",
        ),
        ("a | b\n\n- c | d\n", ("a | b", "c | d"), "A \\| B\n\n- C \\| D\n"),
        (
            "* a\n\n\ta dog\n\truns\n\n\t<div>\n\t\ta cat\n\t</div>\n",
            ("a", "a dog runs", "a cat"),
            "* A\n\n\tA DOG RUNS\n\n\t<div>\n\t\tA CAT\n\t</div>\n",
        ),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_blocks_of_html_and_bars_in_cells_are_translated(page, pieces, filled, line_end) -> None:
    page, filled = (text.replace("\n", line_end) for text in (page, filled))
    markup = parse_markdown(page, "en")
    assert markup.pieces == pieces
    assert markup.fill(pieces) == page
    links = [[(place, place) for place in range(9)] for _ in pieces]
    upper = [piece.upper().replace("X\\|Y", "x\\|y") for piece in pieces]
    assert markup.fill(upper, links) == filled
    hostile = markup.fill(["<script> --> </div> | *a*"] * len(pieces))
    types = [[token.type for token in MarkdownIt().parse(text)] for text in (page, hostile)]
    assert types[0] == types[1]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["---", "+++"])
def test_front_matter_stays(mark: str, line_end: str) -> None:
    page = f"{mark}\ntitle: a dog\n{mark}\n\na cat\n".replace("\n", line_end)
    assert parse_markdown(page, "en").pieces == ("a cat",)


WORDS = [
    "a",
    "dog ",
    "*",
    "**",
    "_",
    "`",
    "[",
    "](b)",
    "]",
    "\n",
    "\n\n",
    "> ",
    "# ",
    "- ",
    "1. ",
    "|",
    "\\",
    "<b>",
    "</b>",
    "~~",
    "!",
    "  \n",
    "&amp;",
    "\t",
    "```\n",
    "https://e.org/x",
]


@given(st.lists(st.sampled_from(WORDS), max_size=25).map("".join) | st.text(max_size=40))
def test_an_unchanged_translation_is_the_page_itself(page: str) -> None:
    markup = parse_markdown(page, "en")
    assert markup.fill(markup.pieces) == page


@pytest.mark.parametrize("mark", ["[", "*a ", "`", "<a ", "![", "](", "*a_ ", "*_", "<div>\n"])
def test_long_and_nested_marks_take_linear_time(mark: str) -> None:
    def parse(count: int) -> None:
        parse_markdown(mark * count, "en", lambda piece: len(piece) < 500)

    assert_grows_linearly(parse, 2_000)


def test_images_that_open_and_never_close_take_linear_time() -> None:
    assert_grows_linearly(lambda count: parse_markdown("![" * count + "](" * count, "en"), 1_000)
