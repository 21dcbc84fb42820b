import pytest

from heedful.errors import TextError
from heedful.preparation.held_out import held_out_files, read_held_out
from heedful.text.corpus import Corpus, expand


def test_rows_of_held_out_text_that_are_skipped_are_named(tmp_path) -> None:
    table = tmp_path / "valid.tsv"
    table.write_text("a\tb\nc\nd\t\ne\tf\n")
    corpus = Corpus(expand([f"{table}:1"]), expand([f"{table}:2"]))
    pairs, note = read_held_out(corpus)
    assert (pairs.sources, pairs.targets) == (["a", "e"], ["b", "f"])
    assert note == (
        f", 1 with an empty side left out; {table}: 1 row was skipped (line 2 has 1 of 2 columns)"
    )


def test_pairs_keep_the_numbers_of_their_lines(tmp_path):
    files = [tmp_path / "source", tmp_path / "target"]
    files[0].write_text("a\n\nb\nc\n")
    files[1].write_text("x\ny\nz\n \n")
    corpus = held_out_files(*files)
    assert corpus is not None
    pairs, note = read_held_out(corpus)
    assert (pairs.sources, pairs.targets, pairs.lines) == (["a", "b"], ["x", "z"], [1, 3])
    assert note == ", 2 with an empty side left out"


def test_both_sides_are_needed_and_hold_text(tmp_path):
    assert held_out_files(None, None) is None
    file = tmp_path / "text"
    file.write_text(" \n")
    for sides in ((file, None), (None, file)):
        with pytest.raises(TextError, match="must be given together"):
            held_out_files(*sides)
    other = tmp_path / "other"
    other.write_text("a\n")
    with pytest.raises(TextError, match="a pair with text on both sides"):
        read_held_out(Corpus([file], [other]))
