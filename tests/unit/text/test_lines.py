"""What a model writes on a line, and what readers make of it."""

import json
import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from heedful.text.corpus import read_lines
from heedful.text.lines import json_line, without_controls

EVERY_CHARACTER = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]


def test_what_ends_lines_or_controls_is_replaced_and_counted():
    replaced = [character for character in EVERY_CHARACTER if without_controls(character)[1]]
    controls = [c for c in EVERY_CHARACTER if unicodedata.category(c) in ("Cc", "Zl", "Zp")]
    assert sorted(replaced) == sorted({*controls, "\ufeff"} - {"\t"})
    assert without_controls("".join(replaced)) == (" " * len(replaced), len(replaced))
    assert without_controls("a\tb\u00a0c\u3000\u200bd\ufffd") == (
        "a\tb\u00a0c\u3000\u200bd\ufffd",
        0,
    )


def test_each_character_is_read_back_on_its_line(tmp_path):
    path = tmp_path / "text"
    lines = [
        without_controls(text)[0]
        for c in (*EVERY_CHARACTER[:0x3001], "\ufeff", "\ufffe", "\U0001f600")
        for text in (c, f"a{c}", f"{c}a", f"a{c}b")
    ]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    assert list(read_lines(path)) == lines
    assert path.read_text(encoding="utf-8").splitlines() == lines


@given(st.text(st.characters(codec="utf-8")))
def test_json_is_one_line_for_every_reader(text):
    line = json_line({"text": text})
    assert line.splitlines() == [line]
    assert json.loads(line) == {"text": text}
