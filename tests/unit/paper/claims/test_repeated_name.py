import numpy as np
import pytest

from heedful.errors import TextError
from heedful.paper.claims.repeated_name import (
    DISTANCES,
    NAMES,
    write_repeated_names,
)


def test_a_name_comes_again_after_so_many_words_and_ends_the_line(corpus, tmp_path):
    written = write_repeated_names(corpus, tmp_path)
    assert written.folder == tmp_path
    known = {*corpus.lines("test", "en")}
    lines = list(zip(written.lines("test", "en"), written.lines("test", "fr"), strict=True))
    assert len(lines) == 300  # however few there were
    for number, (source, target) in enumerate(lines):
        words = target.split()
        places = [n for n, word in enumerate(words) if word in NAMES]
        assert len({words[n] for n in places}) == 1
        assert places[-1] == len(words) - 1
        assert len(places) >= 2
        assert {*np.diff(places)} == {DISTANCES[number % 6] + 1}
        assert 1 <= places[0] <= DISTANCES[number % 6]
        assert not {*source.split()} & {*NAMES}
        assert any(source.startswith(line) for line in known)  # of the same part
    assert len({target.split()[-1] for _, target in lines}) == len(NAMES)


def test_the_same_text_is_written_again(corpus, tmp_path):
    first = write_repeated_names(corpus, tmp_path / "first")
    second = write_repeated_names(corpus, tmp_path / "second")
    assert first.lines("train", "fr") == second.lines("train", "fr")


def test_a_language_without_spaces_is_refused(corpus, tmp_path):
    for part in ("train", "valid", "test"):
        for language in ("en", "zz"):
            (tmp_path / f"{part}.{language}").write_text("\n" * 3, encoding="utf-8")
    unspaced = corpus._replace(folder=tmp_path, target="zz")
    with pytest.raises(
        TextError, match="words separated by spaces, but 32 translations together have only 0"
    ):
        write_repeated_names(unspaced, tmp_path / "out")
