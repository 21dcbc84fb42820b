"""The kinds of files: found by their endings, read, split and written again."""

import pytest

from heedful.errors import TextError
from heedful.serve.documents import file_kinds
from heedful.serve.documents.file_kinds import (
    FILE_KINDS,
    file_ending,
    read_file_content,
    readable_endings,
    split_text,
    words_of,
)


@pytest.mark.parametrize("ending", FILE_KINDS)
def test_every_kind_is_found_by_its_ending(ending: str) -> None:
    assert file_ending(f"a.b{ending.upper()}") == ending
    assert file_ending(f"a{ending}.exe") == file_ending(ending.removeprefix(".")) == ""


@pytest.mark.parametrize("ending", [".txt", ".html", ".srt", ".vtt", ".md"])
def test_text_is_utf_8_and_comes_back_without_its_mark(ending: str) -> None:
    read = FILE_KINDS[ending].read("\ufeffé\r\n".encode())
    assert (read.text, read.write(read.text)) == ("é\r\n", "é\r\n".encode())
    with pytest.raises(TextError, match="UTF-8"):
        FILE_KINDS[ending].read(b"\xe9")


@pytest.mark.parametrize("form", ["text", "html", "markdown", "office", "sentence"])
def test_every_form_gives_an_unchanged_text_back(form: str) -> None:
    text = "One dog. Two dogs."
    layout = split_text(text, form, "en", lambda piece: True)
    assert layout.fill(layout.pieces) == words_of(text, form) == text


@pytest.mark.parametrize(("ending", "module"), [(".md", "markdown_it"), (".docx", "lxml")])
def test_a_missing_extra_is_named(ending: str, module: str, monkeypatch) -> None:
    find = file_kinds.find_spec
    monkeypatch.setattr(
        file_kinds, "find_spec", lambda name: None if name == module else find(name)
    )
    assert ending not in readable_endings()
    assert {".txt", ".html", ".srt"} < set(readable_endings())
    with pytest.raises(TextError, match=r"pip install 'heedful\[documents\]'"):
        read_file_content(ending, b"x")
