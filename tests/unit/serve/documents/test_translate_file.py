"""A file is translated as a whole: tags by links, tags of languages, long sentences, errors."""

from types import SimpleNamespace

import pytest

from heedful.errors import TextError
from heedful.search.settings import SearchOptions
from heedful.serve.documents.document_endings import DOCUMENTS, is_document
from heedful.serve.documents.file_kinds import FILE_KINDS
from heedful.serve.documents.translate_file import translate_file
from heedful.text.reading.vocabulary import SourceVocabulary
from heedful.translation.reading import TextReader


class Shouting:
    """An engine that writes every word in capitals, in the other order."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.terms = ()
        self.tokenizer = SimpleNamespace(
            encode_source=lambda texts: [text.split() for text in texts], around_source=(0, 0)
        )
        # without the check that the tokenizer is a real one
        self.reader = TextReader.__new__(TextReader)
        self.reader.tokenizer = self.tokenizer
        self.reader.reads_text, self.reader.aligns, self.reader._most_around = False, True, 0
        self.reader.vocabulary = SourceVocabulary(lambda texts: [1] * len(texts))

    def translate(self, texts, options=None, *, alignments=False, **more):
        self.terms = more["glossary"], more["protected"]
        self.lines += texts
        found = []
        for text in texts:
            words = [word for word in text.split() if not word.startswith(">>")]
            skip = len(text.split()) - len(words)
            links = tuple((skip + i, len(words) - 1 - i) for i in range(len(words)))
            alignment = SimpleNamespace(links=links) if alignments else None
            text = " ".join(reversed(words)).upper()
            found.append(SimpleNamespace(text=text, alignment=alignment))
        return found


def translated(path, longest=100, **more):
    engine = Shouting()
    engine.reader.longest = longest
    options = {"language": "en", **more}
    return engine, translate_file(engine, path, SearchOptions(), **options).decode()


def test_tags_follow_their_words_and_the_tag_of_a_language_is_not_counted(tmp_path):
    path = tmp_path / "a.html"
    path.write_text("<p>the <b>red</b> old dog</p>")
    assert translated(path)[1] == "<p>DOG OLD <b>RED</b> THE</p>"
    engine, page = translated(path, tag=">>de<<")
    assert page == "<p>DOG OLD <b>RED</b> THE</p>"
    assert engine.lines == [">>de<< the red old dog"]
    assert "<b>" in translated(path, aligns=False)[1]


def test_a_sentence_that_is_too_long_is_divided(tmp_path):
    path = tmp_path / "a.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\none two three, four five six\n")
    engine, _ = translated(path, longest=5)
    assert engine.lines == ["one two three,", "four five six"]


def test_terms_are_handed_on_and_not_cut_apart(tmp_path):
    path = tmp_path / "a.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\none two, three four five six\n")
    engine, _ = translated(path, longest=5)
    assert engine.terms == (None, None)
    assert engine.lines == ["one two,", "three four five six"]
    terms = {"glossary": {"five six": "x"}, "protected": ["two, three"]}
    engine, _ = translated(path, longest=5, **terms)
    assert engine.terms == ({"five six": "x"}, ["two, three"])
    assert engine.lines == ["one two, three", "four five six"]


def test_what_is_wrong_with_a_file_is_said_with_its_name(tmp_path):
    path = tmp_path / "a.docx"
    path.write_bytes(b"x")
    for told in ("must be a complete zip archive", "No such file"):
        with pytest.raises(TextError, match=told) as caught:
            translated(path)
        assert str(caught.value).startswith(str(path))
        path = tmp_path / "none.odt"


def test_lines_of_text_are_no_document(tmp_path):
    assert {*DOCUMENTS, ".txt"} == set(FILE_KINDS)
    assert is_document(tmp_path / "a.DOCX")
    assert not is_document(tmp_path / "a.txt")
    assert not is_document(tmp_path / "a.en")
    assert not is_document(None)
