"""The file that describes several corpora, read and refused."""

import pytest

from heedful.errors import HeedfulError
from heedful.preparation.corpora_file import read_corpora


@pytest.fixture
def folder(tmp_path):
    for name, lines in {
        "a.en": "one\ntwo\n",
        "a.de": "eins\nzwei\n",
        "b.en": "dog\n",
        "b.de": "dog\n",
    }.items():
        (tmp_path / name).write_text(lines)
    return tmp_path


def described(folder, text):
    (folder / "corpora.toml").write_text(text, encoding="utf-8")
    return read_corpora(folder / "corpora.toml")


def test_corpora_have_names_files_weights_and_tags(folder):
    first, second = described(
        folder,
        """
        [a]
        source = ["a.en"]
        target = "a.de"
        weight = 3

        [b-back]
        source = "b.e*"
        target = "b.de"
        weight = 0.5
        tag = "xx"
        """,
    )
    assert (first.name, first.weight, second.name, second.weight) == ("a", 3.0, "b-back", 0.5)
    assert list(first.corpus.pairs()) == [("one", "eins"), ("two", "zwei")]
    assert list(second.corpus.pairs()) == [(">>xx<< dog", "dog")]


@pytest.mark.parametrize("name", ["a[1]", "a*", "a?b"])
def test_only_the_names_in_the_file_are_patterns(folder, name):
    (folder / name).mkdir()
    for file in ("a.en", "a.de", "b.en", "b.de"):
        (folder / file).rename(folder / name / file)
    (folder / name / "b[1].en").write_text("cat\n")
    (folder / "axb").mkdir()
    (folder / "axb" / "c.en").write_text("wrong\n")
    (corpus,) = described(
        folder / name, '[a]\nsource = ["?.en", "b[1].en"]\ntarget = ["[a-b].de", "b.de"]\n'
    )
    assert list(corpus.corpus.pairs()) == [
        ("one", "eins"),
        ("two", "zwei"),
        ("dog", "dog"),
        ("cat", "dog"),
    ]


def test_the_weight_is_optional_for_all_or_none(folder):
    one = '[a]\nsource = "a.en"\ntarget = "a.de"\n'
    assert described(folder, one)[0].weight is None
    with pytest.raises(
        HeedfulError, match="a weight to every corpus or to none, but gives one only to b"
    ):
        described(folder, one + '[b]\nsource = "b.en"\ntarget = "b.de"\nweight = 1\n')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one corpus"),
        ("a = 1", "one table for each corpus"),
        ('["a b"]\nsource = "a.en"\ntarget = "a.de"', "one table for each corpus"),
        ("[a", "must be a TOML file"),
        ('[a]\nsource = "a.en"', "target must be a file name or a list"),
        ('[a]\nsource = 3\ntarget = "a.de"', "source must be a file name or a list"),
        ('[a]\nsource = "no.en"\ntarget = "a.de"', "no.en must exist"),
        ('[a]\nsource = "a.en"\ntarget = "a.de"\nwieght = 2', "but has wieght"),
        ('[a]\nsource = "a.en"\ntarget = "a.de"\nweight = 0', "at most 1e\\+100, but is 0"),
        *(
            (
                f'[a]\nsource = "a.en"\ntarget = "a.de"\nweight = {weight}',
                "at most 1e\\+100, but is",
            )
            for weight in ("inf", "-inf", "nan", "-2", "1e308", "1" + "0" * 400)
        ),
        ('[a]\nsource = "a.en"\ntarget = "a.de"\nweight = true', "at most 1e\\+100, but is True"),
        ('[a]\nsource = "a.en"\ntarget = "a.de"\ntag = ">>fr<<"', "tag must be a code"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(folder, text, message):
    with pytest.raises(HeedfulError, match=message) as error:
        described(folder, text)
    assert error.value.exit_code == 2


def test_a_missing_file_is_one_sentence(folder):
    with pytest.raises(HeedfulError, match="cannot be read: No such file"):
        read_corpora(folder / "none.toml")
