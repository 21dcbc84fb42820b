"""Columns of CSV, TSV and JSON lines: what is a row, which column, and which rows are skipped."""

import csv
import gzip
import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import TextError
from heedful.text.corpus import Corpus, expand, one_file, read_lines
from heedful.text.skipped_rows import SkippedRows
from heedful.text.tables import read_csv, read_jsonl, read_tsv


def lines(path: Path, part: str) -> list[str]:
    return list(read_lines(one_file(f"{path}:{part}")))


def written(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def notes(path: Path, part: str) -> list[str]:
    skipped = SkippedRows()
    list(read_lines(one_file(f"{path}:{part}"), skipped))
    return [note.removeprefix(f"{path}: ") for note in skipped.notes()]


def refusal(path: Path, *parts: str) -> str:
    with pytest.raises(TextError) as caught:
        texts = expand([f"{path}:{part}" for part in parts])
        list(read_lines(texts[0]) if len(texts) == 1 else Corpus(texts[:1], texts[1:]).pairs())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_csv_is_read_as_rfc_4180_has_it(tmp_path: Path) -> None:
    path = written(
        tmp_path / "p.csv",
        '\ufeffid,en,"fr"\r\n1,"A big, red dog","un ""gros"" chien"\r\n2,"Two\r\n  lines",deux\r\n'
        "\r\n3,,vide\r\n",
    )
    assert lines(path, "en") == ["A big, red dog", "Two lines", ""]
    assert lines(path, "fr") == ['un "gros" chien', "deux", "vide"]
    assert lines(path, "2") == lines(path, "EN") == lines(path, "en")
    corpus = Corpus(expand([f"{path}:en"]), expand([f"{path}:3"]))
    assert next(iter(corpus.pairs())) == ("A big, red dog", 'un "gros" chien')


@pytest.mark.parametrize("separator", [";", "\t"])
def test_csv_of_other_countries_is_read(tmp_path: Path, separator: str) -> None:
    row = separator.join
    path = written(tmp_path / "p.csv", f"{row(['en', 'fr'])}\n{row(['a, b', 'c'])}\n")
    assert lines(path, "en") == ["a, b"]


@pytest.mark.parametrize("first", ["sep=;", "SEP=;", '"sep=;"', "\ufeffsep=;"])
def test_the_line_of_excel_names_the_separator_and_is_no_row(tmp_path: Path, first: str) -> None:
    path = written(tmp_path / "p.csv", f"{first}\r\nen;fr\r\na, b;c\r\nd;\r\n;e;f\r\n")
    assert lines(path, "en") == ["a, b", "d"]
    assert notes(path, "fr") == [
        "cells are separated by semicolons",
        "1 row was skipped (line 5 has 3 cells, but the first row has 2)",
    ]
    tabs = written(tmp_path / "t.csv", "sep=\t\nen\tfr\na;b,c\td\n")
    assert lines(tabs, "en") == ["a;b,c"]
    bars = written(tmp_path / "b.csv", "sep=|\nen|fr\na;b,c|d\n")
    assert lines(bars, "en") == ["a;b,c"]


@pytest.mark.parametrize(
    ("text", "first", "note"),
    [
        ("A dog, a cat;Un chien\nA bird;Un oiseau\n", "A dog, a cat", "semicolons"),
        ("A dog; a cat\tUn chien, oui\nA bird\tUn oiseau\n", "A dog; a cat", "tabs"),
        ('"A; dog",Un; chien\nA bird,Un; oiseau\n', "A; dog", ""),
        ("A;dog,x;y\n", "A;dog", ""),
        ('"A\ndog";x\n"A, b";y\n', "A dog", "semicolons"),
        ("a,b\nc,d, e\nf,g\n", "a", ""),
    ],
)
def test_the_separator_is_the_one_that_makes_rows_even(tmp_path, text, first, note) -> None:
    path = written(tmp_path / "p.csv", text)
    assert lines(path, "1")[0] == first
    remarks = [text for text in notes(path, "1") if "separated" in text]
    assert remarks == ([f"cells are separated by {note}"] if note else [])


def test_a_cell_may_be_as_long_as_a_line(tmp_path: Path) -> None:
    cell = "dog " * 50_000
    for row in (f"{cell},x", f'"{cell}",x'):
        assert lines(written(tmp_path / "p.csv", f"en,fr\n{row}\n"), "en") == [cell]


def test_a_first_row_of_names_is_noted_where_columns_have_numbers(tmp_path: Path) -> None:
    path = written(tmp_path / "p.csv", "en,fr\na,b\n")
    assert notes(path, "1") == [
        "the first row is read as the names of columns (en, fr), not as text"
    ]
    path = written(tmp_path / "p.tsv", "en\tfr\na\tb\n")
    (note,) = notes(path, "1")
    assert note.startswith("the first line looks like the names of columns (en, fr) but is read as")
    assert notes(path, "en") == notes(written(tmp_path / "q.tsv", "a dog\tb\n"), "1") == []


def test_a_first_row_of_words_is_text_where_columns_have_numbers(tmp_path: Path) -> None:
    assert lines(written(tmp_path / "a.csv", "dog,chien\ncat,chat\n"), "1") == ["dog", "cat"]
    assert lines(written(tmp_path / "b.csv", ",source,target\n0,cat,chat\n"), "2") == ["cat"]
    assert lines(written(tmp_path / "c.tsv", "en\tfr\ncat\tchat\n"), "1") == ["en", "cat"]


cell = st.text(
    st.characters(exclude_characters="\r\n\0\ufeff", codec="utf-8", exclude_categories=("Cs",))
)


@given(st.lists(st.tuples(cell, cell), max_size=6), st.sampled_from(["csv", "jsonl"]))
def test_what_other_programs_write_comes_back(tmp_path_factory, rows, kind) -> None:
    path = tmp_path_factory.mktemp("table") / f"p.{kind}"
    with path.open("w", encoding="utf-8", newline="") as file:
        if kind == "csv":
            csv.writer(file).writerows([("en", "fr"), *rows])
        else:
            file.writelines(json.dumps({"en": a, "fr": b}) + "\n" for a, b in rows)
    if rows:
        texts = expand([f"{path}:en", f"{path}:fr"])
        assert list(Corpus(texts[:1], texts[1:]).pairs()) == rows


def test_rows_of_another_width_are_skipped_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "p.csv", 'en,fr\na,b\nno comma\na, b,c\n"x" y,z\nc,d\n')
    assert lines(path, "fr") == ["b", "d"]
    (note,) = notes(path, "fr")
    assert note.startswith(
        "3 rows were skipped (line 3 has 1 cells, but the first row has 2; line 4 "
    )
    assert "line 5 is not CSV" in note


def test_tsv_has_columns_by_name_and_no_quotes(tmp_path: Path) -> None:
    path = written(tmp_path / "p.tsv", 'en\tEnglish text\tfr\n"a\tb\t"c"\nd\ne\tf\tg\th\n')
    assert lines(path, "en") == ['"a', "d", "e"]
    assert lines(path, "English text") == ["b", "f"]
    assert lines(path, "fr") == ['"c"', "g"]
    assert notes(path, "fr") == ["1 row was skipped (line 3 has 1 of 3 columns)"]
    assert "has “en”, “English text”, “fr”; name one" in refusal(path, "de")


def test_json_lines_have_fields_and_fields_of_fields(tmp_path: Path) -> None:
    rows = [
        {"en": "a", "translation": {"fr": "b"}, "x.y": "c"},
        {"en": "d\n e", "translation": {"fr": "f"}, "x.y": "g"},
    ]
    path = written(tmp_path / "p.jsonl", "".join(json.dumps(row) + "\n\n" for row in rows))
    assert lines(path, "en") == ["a", "d e"]
    assert lines(path, "translation.fr") == ["b", "f"]
    assert lines(path, "x.y") == ["c", "g"]
    told = refusal(path, "de")
    assert "with text in “de”, but has none; the fields are “en”, “translation”" in told


def test_json_that_has_no_text_is_skipped_and_counted(tmp_path: Path) -> None:
    bad = ["{", "[]", '{"en": 3}', '{"en": null}', '{"fr": "a"}', '{"en": "\\ud83d"}']
    bad += ['{"en": "\\u0000"}', "[" * 100_000]
    path = written(tmp_path / "p.ndjson", "\n".join(['{"en": "first"}', *bad, '{"en": "last"}']))
    assert lines(path, "en") == ["first", "last"]
    (note,) = notes(path, "en")
    assert note.startswith(f"{len(bad)} rows were skipped (line 2 is not JSON")


def test_a_table_without_a_column_and_the_same_column_twice_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "p.csv", "en,fr\na,b\n")
    with pytest.raises(TextError, match=r"write for example .*p\.csv:en"):
        expand([path])
    assert "“en” and “1” are the same column" in refusal(path, "en", "1")
    assert "two texts" in refusal(path, "en", "en")
    assert "must have a column 7, but every row lacks it" in refusal(path, "7")


def test_a_mark_that_stays_open_is_named_and_bounded(tmp_path: Path) -> None:
    path = written(tmp_path / "p.csv", 'en,fr\na,b\n"c,d\ne,f\n')
    assert "one stays open in the row that begins in line 3" in refusal(path, "fr")
    for bomb in (b'"' + b"a\n" * 100_000, b'"\n",' * 100_000):
        packed = tmp_path / "p.csv.gz"
        packed.write_bytes(gzip.compress(b"en,fr\na,b\n" + bomb))
        tracemalloc.start()
        try:
            assert "one stays open in the row that begins in line 3" in refusal(packed, "fr")
            assert tracemalloc.get_traced_memory()[1] < 4_000_000
        finally:
            tracemalloc.stop()


def test_the_way_out_of_a_row_that_would_move_lines(tmp_path: Path) -> None:
    path = written(tmp_path / "p.jsonl", '{"en": "a"}\n{}\n')
    plain = written(tmp_path / "t.fr", "x\ny\n")
    with pytest.raises(
        TextError, match=r"line 2 has no text in the field “en”; repair this row, or remove"
    ):
        list(Corpus(expand([f"{path}:en"]), expand([plain])).pairs())


def test_a_list_of_objects_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "p.jsonl", '[{"en": "a"},\n{"en": "b"}]\n')
    assert "one JSON object per line, but begins with a list" in refusal(path, "en")


@pytest.mark.parametrize("read", [read_csv, read_tsv, read_jsonl])
def test_an_empty_table_has_no_rows_or_is_refused(read) -> None:
    skipped = SkippedRows()
    try:
        assert list(read(iter(()), "p", ["1"], skipped)) == []
    except TextError as error:
        assert str(error).startswith("p must have ")
    assert list(skipped.notes()) == []


@pytest.mark.parametrize(("ending", "mark"), [("csv", ","), ("tsv", "\t")])
def test_a_name_of_two_columns_is_refused(tmp_path: Path, ending: str, mark: str) -> None:
    rows = ("en", "en", "fr"), ("a", "b", "c")
    path = written(tmp_path / f"p.{ending}", "".join(f"{mark.join(row)}\n" for row in rows))
    assert "columns 1 and 2 both have this name" in refusal(path, "en")
    assert lines(path, "fr") == ["c"]
    assert lines(path, "2")[-1] == "b"
