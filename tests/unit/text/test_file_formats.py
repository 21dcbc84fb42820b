import gzip
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import TextError
from heedful.text.corpus import Corpus, language_of, read_lines
from heedful.text.file_formats import TextSource, read_rows, split_name
from heedful.text.skipped_rows import SkippedRows

OPENERS = {"": open, ".gz": gzip.open, ".xz": lzma.open}


def message(text: TextSource) -> str:
    with pytest.raises(TextError) as caught:
        list(read_lines(text))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_a_column_is_what_stands_between_tabs(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"pairs.tsv{ending}"
    with OPENERS[ending](path, "wb") as file:
        file.write('\ufeffa "b\tc\t\r\n d \te"\tf\tg\r\n'.encode())
    assert list(read_lines(TextSource(path, "1"))) == ['a "b', " d "]
    assert list(read_lines(TextSource(path, "2"))) == ["c", 'e"']
    assert list(read_rows(path, ["3", "1", "1"])) == [("", 'a "b', 'a "b'), ("f", " d ", " d ")]


cell = st.text(st.characters(exclude_characters="\n\r\t\0\ufeff", codec="utf-8"))


@given(st.lists(st.tuples(cell, cell, cell), max_size=8))
def test_columns_come_back_as_they_were_written(tmp_path_factory, rows) -> None:
    path = tmp_path_factory.mktemp("tsv") / "pairs.tsv"
    path.write_bytes("".join("\t".join(row) + "\n" for row in rows).encode())
    assert list(read_rows(path, ["1", "2", "3"])) == rows
    for column in (1, 2, 3):
        text = TextSource(path, str(column))
        assert list(read_lines(text)) == [row[column - 1] for row in rows]


def test_a_row_with_too_few_columns_is_skipped_where_no_line_moves(tmp_path: Path) -> None:
    path, plain = tmp_path / "pairs.tsv", tmp_path / "text.de"
    path.write_bytes(b"a\tb\ne\nc\td\n")
    plain.write_bytes(b"x\ny\nz\n")
    skipped = SkippedRows()
    assert list(read_lines(TextSource(path, "2"), skipped)) == ["b", "d"]
    note = f"{path}: 1 row was skipped (line 2 has 1 of 2 columns)"
    assert list(skipped.notes()) == [note]
    corpus = Corpus((TextSource(path, "1"),), (TextSource(path, "2"),))
    assert list(corpus.pairs()) == list(corpus.pairs()) == [("a", "b"), ("c", "d")]
    assert list(corpus.skipped.notes()) == [note]
    with pytest.raises(TextError, match=r"pairs\.tsv must have text in every row.*line 2 has 1"):
        list(Corpus((TextSource(path, "2"),), (plain,)).pairs())
    assert "every row lacks it: line 1 has 2" in message(TextSource(path, "3"))


def test_wrong_encodings_and_damage_are_named_as_in_plain_text(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes(b"a\tb\nc\t\xe9\n")
    assert "line 2 holds the invalid byte 0xe9 at offset 2" in message(TextSource(path, "1"))
    packed = tmp_path / "pairs.tsv.gz"
    packed.write_bytes(gzip.compress(b"a\tb\n" * 1000)[:-9])
    assert "cut off or damaged" in message(TextSource(packed, "1"))
    assert "No such file" in message(TextSource(tmp_path / "no.tsv", "1"))


@pytest.mark.parametrize(
    ("name", "part", "said"),
    [
        (
            "pairs.tsv",
            "",
            "pairs.tsv must be named with a column, by its name or its number from 1, but got ",
        ),
        ("pairs.tsv.gz", "", "write for example pairs.tsv.gz:1"),
        ("pairs.tsv", "0", "“0”"),
        ("pairs.csv", "", "write for example pairs.csv:en"),
        ("pairs.jsonl.zst", "", "pairs.jsonl.zst:en"),
        ("memory.tmx", "", "memory.tmx must be named with a language"),
        ("memory.tmx.xz", "e n", "“e n”"),
        ("set.xml", "", "set.xml:src"),
        ("set.xml", "target", "“target”"),
        ("set.sgm", "en", "remove “:"),
        ("text.en", "2", "remove “:"),
    ],
)
def test_a_part_must_fit_the_format(name: str, part: str, said: str) -> None:
    with pytest.raises(TextError) as caught:
        TextSource(Path(name), part)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "file", "part"),
    [
        ("pairs.tsv:2", "pairs.tsv", "2"),
        ("a:b/pairs.TSV.gz:2", "a:b/pairs.TSV.gz", "2"),
        ("*.tmx.xz:en-GB", "*.tmx.xz", "en-GB"),
        ("memory.tmx:en+de", "memory.tmx", "en+de"),
        ("set.xml:ref:A", "set.xml", "ref:A"),
        ("pairs.tsv:", "pairs.tsv", ""),
        ("pairs.tsv", "pairs.tsv", ""),
        ("text.en:2", "text.en:2", ""),
        ("pairs.tsv.part:2", "pairs.tsv.part:2", ""),
        ("pairs.csv.zst:English text", "pairs.csv.zst", "English text"),
        ("a.ndjson:meta.en", "a.ndjson", "meta.en"),
        ("a\0.en", "a\0.en", ""),
    ],
)
def test_a_colon_parts_only_behind_a_format_that_has_parts(name: str, file: str, part: str) -> None:
    assert split_name(name) == (file, part)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (TextSource(Path("pairs.en.tsv"), "2"), ""),
        (TextSource(Path("pairs.tsv"), "de"), "de"),
        (TextSource(Path("pairs.csv.zst"), "pt-BR"), "pt-BR"),
        (TextSource(Path("pairs.jsonl"), "meta.fr"), "fr"),
        (TextSource(Path("pairs.csv"), "source"), ""),
        (TextSource(Path("memory.tmx"), "de"), "de"),
        (TextSource(Path("memory.de.tmx.gz"), "en-GB+de"), "en-GB"),
        (TextSource(Path("newstest2014-deen-src.de.sgm")), "de"),
        (TextSource(Path("newstest2014-deen-src.de.SGML.xz")), "de"),
        (TextSource(Path("source.sgm")), ""),
        (TextSource(Path("newstest2021.en-de.xml"), "src"), ""),
    ],
)
def test_the_language_of_a_text(text: TextSource, language: str) -> None:
    assert language_of(text) == language
