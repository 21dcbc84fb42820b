"""Tables of pairs: quotes, names of columns, and rows with a column too few."""

import json

import pytest

from heedful.errors import TextError
from heedful.text.corpus import Corpus, expand, one_file, read_lines
from heedful.text.skipped_rows import SkippedRows


def read(path, part):
    skipped = SkippedRows()
    lines = list(read_lines(one_file(f"{path}:{part}"), skipped))
    return lines, list(skipped.notes())


def test_quotation_marks_of_tsv_are_text_and_never_swallow_a_line(tmp_path):
    path = tmp_path / "q.tsv"
    path.write_text('"a small cat\tun petit chat\nhis "hat" fell\tson chapeau\tmore\n""\t"\nx\t\n')
    assert read(path, 1) == (['"a small cat', 'his "hat" fell', '""', "x"], [])
    assert read(path, 2) == (["un petit chat", "son chapeau", '"', ""], [])


def test_windows_line_ends_and_a_byte_order_mark_are_no_text(tmp_path):
    path = tmp_path / "w.tsv"
    path.write_bytes(b"\xef\xbb\xbfen\tfr\r\na\tb\r\n")
    assert read(path, "en") == (["a"], [])
    lines, (note,) = read(path, 2)
    assert lines == ["fr", "b"]
    assert "the first line looks like the names of columns (en, fr)" in note


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.tsv", "en\tfr\na\tb\nlonely\nc\td\n"),
        ("s.csv", "en,fr\na,b\nlonely\nc,d\n"),
        ("s.jsonl", '{"en":"a","fr":"b"}\n{"en":"lonely"}\n{"en":"c","fr":"d"}\n'),
    ],
)
def test_a_row_with_a_column_too_few_is_skipped_counted_and_named(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    lines, (note,) = read(path, "fr")
    assert lines == ["b", "d"]
    number = 2 if name == "s.jsonl" else 3
    assert note.startswith(f"{path}: 1 row was skipped (line {number} has ")
    corpus = Corpus(expand([f"{path}:en"]), expand([f"{path}:fr"]))
    assert list(corpus.pairs()) == [("a", "b"), ("c", "d")]
    assert list(corpus.skipped.notes()) == [note]


def test_csv_and_json_lines_of_other_programs_give_the_same_pairs(tmp_path):
    rows = [("The big, red “dog”", 'le "gros" chien'), ("two\nlines", "deux lignes")]
    table, records = tmp_path / "p.csv", tmp_path / "p.jsonl"
    quoted = [",".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row) for row in rows]
    table.write_text("\r\n".join(["en,fr", *quoted]) + "\r\n", encoding="utf-8")
    records.write_text(
        "".join(json.dumps({"id": 1, "translation": {"en": s, "fr": t}}) + "\n" for s, t in rows)
    )
    expected = [("The big, red “dog”", 'le "gros" chien'), ("two lines", "deux lignes")]
    for names in ([f"{table}:en", f"{table}:fr"], [f"{table}:1", f"{table}:2"]):
        assert list(Corpus(expand(names[:1]), expand(names[1:])).pairs()) == expected
    names = [f"{records}:translation.{code}" for code in ("en", "fr")]
    assert list(Corpus(expand(names[:1]), expand(names[1:])).pairs()) == expected


def test_a_whole_table_is_no_text_and_a_wrong_name_is_answered_with_the_right_ones(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("en,fr\na,b\n")
    with pytest.raises(TextError, match=r"write for example .*p\.csv:en"):
        expand([path])
    with pytest.raises(TextError, match="but this line has “en”, “fr”; name one of them"):
        read(path, "de")
