import html
import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from heedful.exchange.card.escape import code, code_block, plain, yaml_lines

# What a name of a file may hold, halves of characters included.
NAMES = st.text(st.characters(codec=None, exclude_characters="\0"), min_size=1, max_size=40)
HOSTILE = [
    'a"\nlicense: mit',
    "---",
    "no",
    "1e3",
    "<script>alert(1)</script>",
    "`<img src=x onerror=x>`",
    "![x](https://example.org/x.png)",
    "a\u202eb\u2028c",
    "``` \n# x",
    "😀\udc80",
    "&lt;b&gt; @everyone https://example.org",
]


def whole(text):
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_one_scalar(text):
    fields = {"license": text, "tags": [text, "b"], "nested": [{"a": text, "b": {"c": 1.5}}]}
    lines = yaml_lines(fields)
    assert not any("\n" in line for line in lines)
    loaded = yaml.safe_load("\n".join(lines))
    expected = whole(text)
    assert loaded == {
        "license": expected,
        "tags": [expected, "b"],
        "nested": [{"a": expected, "b": {"c": 1.5}}],
    }


@settings(max_examples=200)
@given(NAMES)
def test_any_text_comes_back_from_yaml(text):
    assert yaml.safe_load("\n".join(yaml_lines({"name": text}))) == {"name": whole(text)}


@settings(max_examples=200)
@given(NAMES | st.sampled_from(HOSTILE))
def test_any_text_is_code_and_nothing_else(text):
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(f"- {code(text)}: x")
    (inside,) = re.findall(r"<li><code>(.*)</code>: x</li>", rendered)
    shown = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in whole(text)
    )
    expected = shown if shown.strip() else "(empty)"
    assert html.unescape(inside) in (expected, f" {expected} ")


@settings(max_examples=100)
@given(st.lists(NAMES | st.sampled_from(HOSTILE), min_size=1, max_size=4))
def test_no_line_ends_a_block_of_code(lines):
    rendered = MarkdownIt().render("\n".join(code_block(lines, "text")))
    assert rendered.startswith('<pre><code class="language-text">')
    assert rendered.endswith("</code></pre>\n")
    assert rendered.count("<") == 4


def test_a_usual_name_stays_as_it_is():
    assert plain("opus-mt-en-fr") == "opus-mt-en-fr"
    assert plain("my_model") == "`my_model`"
