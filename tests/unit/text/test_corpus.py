import gzip
import os
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import TextError
from heedful.text.corpus import Corpus, expand, language_of, one_file, read_lines
from heedful.text.file_formats import TextSource
from heedful.text.lines import decode_lines


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def message(path: Path) -> str:
    with pytest.raises(TextError) as caught:
        list(read_lines(path))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_plain_file_gives_its_lines(tmp_path: Path) -> None:
    path = written(tmp_path / "text.en", "one\n\n déjà vu \nlast".encode())
    assert list(read_lines(path)) == ["one", "", " déjà vu ", "last"]


def test_a_final_line_feed_does_not_make_another_line(tmp_path: Path) -> None:
    assert list(read_lines(written(tmp_path / "a", b"one\n"))) == ["one"]
    assert list(read_lines(written(tmp_path / "b", b"one\n\n"))) == ["one", ""]
    assert list(read_lines(written(tmp_path / "c", b""))) == []


text_of_a_line = st.text(st.characters(exclude_characters="\n\0", codec="utf-8"))


@given(st.lists(text_of_a_line, max_size=8))
def test_every_line_survives_whatever_characters_it_holds(lines: list[str]) -> None:
    data = b"".join(f"{line}\r\n".encode() for line in ["first", *lines])
    assert list(decode_lines(BytesIO(data), "x")) == ["first", *lines]


def test_only_line_feeds_end_a_line(tmp_path: Path) -> None:
    strange = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\rh"
    assert list(read_lines(written(tmp_path / "t", f"{strange}\nend\n".encode()))) == [
        strange,
        "end",
    ]


def test_windows_line_ends_and_one_byte_order_mark_are_dropped(tmp_path: Path) -> None:
    path = written(tmp_path / "t", "\ufeffone\r\n\ufefftwo\r\r\n".encode())
    assert list(read_lines(path)) == ["one", "\ufefftwo\r"]


def test_invalid_utf8_names_file_line_offset_and_byte(tmp_path: Path) -> None:
    path = written(tmp_path / "bad.en.gz", "fine\né".encode() + b"ab\xff\n")
    text = message(path)
    assert str(path) in text
    assert "line 2" in text
    assert "0xff at offset 4" in text


def test_offsets_count_the_byte_order_mark(tmp_path: Path) -> None:
    assert "offset 4" in message(written(tmp_path / "t", b"\xef\xbb\xbfa\xfe\n"))


def test_surrogates_are_not_utf8(tmp_path: Path) -> None:
    assert "0xed at offset 0" in message(written(tmp_path / "t", b"\xed\xa0\x80\n"))


def test_nul_names_file_line_and_offset(tmp_path: Path) -> None:
    path = written(tmp_path / "nul.en", b"a\nb\nxy\0z\n")
    text = message(path)
    assert f"{path} must be text, but line 3 holds a NUL character at offset 2" in text


def test_missing_files_and_folders_are_reported(tmp_path: Path) -> None:
    assert "No such file" in message(tmp_path / "none.en")
    assert "directory" in message(tmp_path)


def test_a_file_without_permission_is_reported(tmp_path: Path) -> None:
    path = written(tmp_path / "closed.en", b"one\n")
    path.chmod(0)
    user = os.geteuid()
    if user == 0:  # file modes do not bind root: become an ordinary user for the check
        os.seteuid(65534)
    try:
        text = message(path)
    finally:
        os.seteuid(user)
    assert str(path) in text
    assert "Permission denied" in text


def test_expand_sorts_within_a_pattern_and_keeps_the_order_of_patterns(tmp_path: Path) -> None:
    for name in ("b.en", "a.en", "c.de"):
        written(tmp_path / name, b"x\n")
    (tmp_path / "folder.en").mkdir()
    found = expand([tmp_path / "c.de", str(tmp_path / "*.en")])
    assert [text.path.name for text in found] == ["c.de", "a.en", "b.en"]


def test_expand_takes_an_existing_name_literally(tmp_path: Path) -> None:
    path = written(tmp_path / "odd[1].en", b"x\n")
    written(tmp_path / "odd1.en", b"x\n")
    assert expand([path]) == [TextSource(path)]


def test_expand_gives_the_part_to_every_file_of_a_pattern(tmp_path: Path) -> None:
    for name in ("b.tsv.gz", "a.tsv.gz", "c.tmx"):
        written(tmp_path / name, b"x\n")
    found = expand([f"{tmp_path}/*.tsv.gz:2", f"{tmp_path}/c.tmx:en"])
    assert [str(text) for text in found] == [
        f"{tmp_path}/a.tsv.gz:2",
        f"{tmp_path}/b.tsv.gz:2",
        f"{tmp_path}/c.tmx:en",
    ]
    assert one_file(f"{tmp_path}/*.tmx:en") == TextSource(tmp_path / "c.tmx", "en")
    with pytest.raises(TextError, match="names 2"):
        one_file(f"{tmp_path}/*.tsv.gz:2")


def test_a_file_whose_name_looks_like_a_part_is_that_file(tmp_path: Path) -> None:
    path = written(tmp_path / "pairs.tsv:2", b"a\tb\n")
    written(tmp_path / "pairs.tsv", b"one\ttwo\n")
    assert expand([path]) == [TextSource(path)]
    assert list(read_lines(one_file(path))) == ["a\tb"]
    assert list(read_lines(one_file(f"{tmp_path}/pairs.tsv:1"))) == ["one"]


@pytest.mark.parametrize("name", ["missing.en", "*.none", "", "a\0b", "no.tsv:1", "*.tmx:en"])
def test_expand_names_what_matches_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(TextError) as caught:
        expand([f"{tmp_path}/{name}"])
    assert str(tmp_path) in str(caught.value)


def test_expand_refuses_pipes_and_nothing_at_all(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TextError, match="pipe"):
        expand([tmp_path / "pipe"])
    with pytest.raises(TextError, match="none was"):
        expand([])


def corpus_of(tmp_path: Path, source: list[int], target: list[int]) -> Corpus:
    """Files of the given numbers of lines; every line contains its side and number."""
    sides = []
    for side, counts in (("source", source), ("target", target)):
        number, paths = 0, []
        for part, count in enumerate(counts):
            lines = [str(number + offset) for offset in range(count)]
            number += count
            text = "".join(f"{line}\n" for line in lines)
            paths.append(written(tmp_path / f"{part}.{side}", text.encode()))
        sides.append(tuple(paths))
    return Corpus(*sides)


def test_pairs_go_file_by_file_when_both_sides_have_as_many(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, [2, 0, 3], [2, 0, 3])
    assert list(corpus.pairs()) == [(str(n), str(n)) for n in range(5)]
    assert len(list(corpus.pairs())) == 5


def test_pairs_go_over_the_whole_text_when_the_sides_are_cut_differently(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, [2, 3], [5])
    assert list(corpus.pairs()) == [(str(n), str(n)) for n in range(5)]


@pytest.mark.parametrize(
    ("source", "target", "counts"),
    [([3], [7], (3, 7)), ([1207], [3], (1207, 3)), ([0], [2], (0, 2)), ([2, 2], [3], (4, 3))],
)
def test_sides_of_different_length_are_named_with_their_counts(
    tmp_path: Path, source: list[int], target: list[int], counts: tuple[int, int]
) -> None:
    corpus = corpus_of(tmp_path, source, target)
    with pytest.raises(TextError) as caught:
        list(corpus.pairs())
    text = str(caught.value)
    assert f"{corpus.source[-1]} has {counts[0]:,} and {corpus.target[0]} has" in text
    assert f"has {counts[1]:,};" in text


def test_files_that_differ_one_by_one_are_reported_though_their_sums_agree(tmp_path: Path) -> None:
    with pytest.raises(TextError, match=r"0\.source has 2 and .*0\.target has 1"):
        list(corpus_of(tmp_path, [2, 1], [1, 2]).pairs())


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TextError, match=r"0\.source.*0\.target.*empty"):
        list(corpus_of(tmp_path, [0], [0]).pairs())


@pytest.mark.parametrize(
    ("name", "language"),
    [("a/train.en", "en"), ("train.en.gz", "en"), ("x.y.zh-TW.xz", "zh-TW"), ("text", "")],
)
def test_the_language_is_the_ending_before_compression(name: str, language: str) -> None:
    assert language_of(Path(name)) == language
    assert language_of(Path("text.gz")) == ""


def test_both_sides_of_one_file_are_read_in_one_pass(tmp_path: Path) -> None:
    rows = b"".join(b"a%d\tb%d\tc%d\n" % (n, n, n) for n in range(3))
    path = written(tmp_path / "pairs.tsv", rows)
    same = tmp_path / "." / "pairs.tsv"
    corpus = Corpus((TextSource(path, "3"),), (TextSource(same, "1"),))
    assert list(corpus.pairs()) == [(f"c{n}", f"a{n}") for n in range(3)]
    twice = Corpus((TextSource(path, "1"), TextSource(path, "2")), (TextSource(path, "3"),))
    with pytest.raises(TextError, match=r"pairs\.tsv:1 \+ .*pairs\.tsv:2 has 6 .*tsv:3 has 3"):
        list(twice.pairs())


def test_columns_go_with_lines_of_another_file(tmp_path: Path) -> None:
    path = written(tmp_path / "pairs.tsv", b"a\tb\nc\td\n")
    plain = written(tmp_path / "text.de", b"x\ny\n")
    assert list(Corpus((TextSource(path, "2"),), (plain,)).pairs()) == [("b", "x"), ("d", "y")]


def test_real_text_keeps_every_byte(corpora: Path) -> None:
    path = corpora / "multi30k" / "raw" / "train.de.gz"
    with gzip.open(path) as file:
        content = file.read()
    assert "".join(f"{line}\n" for line in read_lines(path)).encode() == content


def test_one_text_cannot_be_both_sides(tmp_path: Path) -> None:
    file, other = written(tmp_path / "a.en", b"a\n"), written(tmp_path / "a.de", b"a\n")
    linked, hard = tmp_path / "link.de", tmp_path / "hard.de"
    linked.symlink_to(file)
    hard.hardlink_to(file)
    for target in (file, linked, hard, tmp_path / "." / "a.en"):
        with pytest.raises(TextError, match="must be two texts"):
            Corpus([other, file], [file, target])
    columns = written(tmp_path / "pairs.tsv", b"a\tb\n")
    both = expand([f"{columns}:1", f"{columns}:2"])
    with pytest.raises(TextError, match=f"two texts, but got {columns}:2 for both"):
        Corpus(both[1:], both[1:])
    assert list(Corpus(both[:1], both[1:]).pairs()) == [("a", "b")]
    # both directions in one model, and a copy made on purpose
    assert len(list(Corpus([file, other], [other, file]).pairs())) == 2


@pytest.mark.parametrize(
    "sentences",
    [
        ["I have never seen it."],
        ["Hi", "Who is there?"],
        ["A line\nand one more"],
        ["私は学生です"],
        ["x" * 300 + "!"],
        ["[She] walks *fast*"],
    ],
)
def test_a_sentence_is_no_file_and_is_answered_with_how_to_write_one(sentences: list[str]) -> None:
    with pytest.raises(TextError) as caught:
        expand(sentences)
    assert "Text must be given as files, but there is no file “" in str(caught.value)
    assert "write the sentences to a file, one per line" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_name_with_blanks_is_still_a_name(tmp_path: Path) -> None:
    file = written(tmp_path / "my own text!", b"a\n")
    assert expand([str(file)]) == expand([str(tmp_path / "my own *")]) == [TextSource(file)]
    with pytest.raises(TextError, match="must exist, but it does not"):
        expand([str(tmp_path / "no such.en.gz")])


def test_characters_are_read_by_side_and_before_the_tag(tmp_path):
    for name in ("a.en", "a.fr"):
        written(tmp_path / name, " \ufeffe\u0301\u00a0 b\u00a0c\n".encode())
    corpus = Corpus([TextSource(tmp_path / "a.en", tag=">>fr<<")], [tmp_path / "a.fr"])
    assert list(corpus.with_characters_read().pairs()) == [(">>fr<< é b c", "é b\u00a0c")]


def test_characters_are_read_before_an_earlier_change(tmp_path):
    for name in ("a.en", "a.fr"):
        written(tmp_path / name, b"a  b\n")
    corpus = Corpus([tmp_path / "a.en"], [tmp_path / "a.fr"])
    changed = corpus.changed(lambda pairs: ((f"{s}.", f"{t}!") for s, t in pairs))
    assert list(changed.with_characters_read().pairs()) == [("a b.", "a b!")]
    assert list(changed.pairs()) == [("a  b.", "a  b!")]
