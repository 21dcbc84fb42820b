import pytest

from heedful.preparation.corpora_file import read_corpora
from heedful.preparation.prepare import prepare
from heedful.preparation.raw_text import RawText

SETTINGS = ["data.subwords=character", "data.vocabulary_size=200"]


def corpora(folder, *tags):
    """A file of corpora, one for each tag; without a tag where it is empty."""
    for language, line in (("en", "the dog runs"), ("fr", "le chien court")):
        (folder / f"text.{language}").write_text(f"{line}\n" * 5, encoding="utf-8")
    tables = [
        f'[part{number}]\nsource = "text.en"\ntarget = "text.fr"\n'
        + (f'tag = "{tag}"\n' if tag else "")
        for number, tag in enumerate(tags)
    ]
    path = folder / "corpora.toml"
    path.write_text("\n".join(tables), encoding="utf-8")
    return path


def test_corpora_without_a_tag_are_named_beside_those_with_one(tmp_path):
    said = []
    path = corpora(tmp_path, "", "fr", "de", "")
    prepare(
        "tiny", out=tmp_path / "out", corpora=path, settings=SETTINGS, processes=1, say=said.append
    )
    (note,) = [line for line in said if line.startswith("note: ")]
    assert "lines of part0, part3 have no language tag" in note
    assert "lines of part1 (>>fr<<), part2 (>>de<<) have" in note


@pytest.mark.parametrize("tags", [("",), ("", ""), ("fr",), ("fr", "de")])
def test_corpora_that_are_alike_need_no_note(tmp_path, tags):
    text = RawText(tuple(read_corpora(corpora(tmp_path, *tags))))
    assert text._note_on_tags() == ""
