import pytest

from heedful.errors import TextError
from heedful.paper.claims.repeated_name import (
    DISTANCES,
    NAMES,
    distance_of,
    write_repeated_names,
)


def test_every_line_ends_with_the_name_that_it_has_so_many_words_before(corpus, tmp_path):
    written = write_repeated_names(corpus, tmp_path)
    assert written.folder == tmp_path
    known = {*corpus.lines("test", "en")}
    lines = list(zip(written.lines("test", "en"), written.lines("test", "fr"), strict=True))
    assert len(lines) == 30
    for number, (source, target) in enumerate(lines):
        words = target.split()
        distance = DISTANCES[number % 6]
        assert distance == distance_of(number)
        assert words[-1] in NAMES
        assert words[-1 - distance] == words[-1]
        assert [word for word in words if word in NAMES] == [words[-1]] * 2
        assert not {*source.split()} & {*NAMES}
        assert any(source.startswith(line) for line in known)  # of the same part
    assert {target.split()[-1] for _, target in lines} > {NAMES[0]}


def test_the_same_text_is_written_again(corpus, tmp_path):
    first = write_repeated_names(corpus, tmp_path / "first")
    second = write_repeated_names(corpus, tmp_path / "second")
    assert first.lines("train", "fr") == second.lines("train", "fr")


def test_a_language_without_spaces_is_refused(corpus, tmp_path):
    for part in ("train", "valid", "test"):
        for language in ("en", "zz"):
            (tmp_path / f"{part}.{language}").write_text("\n" * 3, encoding="utf-8")
    unspaced = corpus._replace(folder=tmp_path, target="zz")
    with pytest.raises(TextError, match="words with spaces between, but 32 of its translations"):
        write_repeated_names(unspaced, tmp_path / "out")
