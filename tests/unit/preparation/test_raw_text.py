from contextlib import nullcontext

import pytest

from heedful.config.load import load_config
from heedful.errors import TextError
from heedful.preparation.corpora_file import read_corpora
from heedful.preparation.find_training_data import find_text
from heedful.preparation.letterless import LetterlessPairs
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


@pytest.mark.parametrize(
    ("line", "reading"),
    [
        ("it &apos;s a well @-@ known dog", "exact"),
        ("a well @-@ known\u200b dog &amp; a re\u00add cat", "text"),
        ("a re\u00add\u200b dog", "text"),
        (">>de<< a red dog", "exact"),
        ("\ufeff>>de<< a re\u00add dog", "text"),
    ],
)
def test_held_out_lines_are_read_like_the_training_text(tmp_path, line, reading):
    for name, lines in (
        ("text.en", ["the cat runs fast", line] * 5),
        ("text.fr", ["le chat court vite", "un chien"] * 5),
        ("test.en", [line]),
        ("test.fr", ["aucun"]),
    ):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")
    files = {"source": tmp_path / "text.en", "target": tmp_path / "text.fr"}
    valid = {"valid_source": tmp_path / "test.en", "valid_target": tmp_path / "test.fr"}
    settings, said = [*SETTINGS, f"data.reading={reading}", "data.unescape=true"], []
    report = prepare(
        "tiny",
        **files,
        **valid,
        out=tmp_path / "leaky",
        settings=settings,
        processes=1,
        say=said.append,
    )
    assert "5 training pairs have a line that equals a validation line" in report.notes[-1]
    exclude = tmp_path / "test.en"
    clean = prepare(
        "tiny", **files, exclude=exclude, out=tmp_path / "out", settings=settings, processes=1
    )
    assert clean.dropped["overlap"] == 5


def numbers(folder, change):
    """Text whose source lines have digits only, except for one in ten."""
    sources = [f"{number} {number + 1}" if number % 10 else "one two" for number in range(200)]
    for name, lines in (("source", sources), ("target", map(change, sources))):
        (folder / f"n.{name}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return find_text(folder / "n.source", folder / "n.target")


def reverse(line):
    return " ".join(reversed(line.split()))


def test_text_that_translate_would_copy_is_refused_before_any_work(tmp_path):
    text = numbers(tmp_path, reverse)
    config = load_config("tiny", SETTINGS)
    for door in (text.describe, text.learn):
        with pytest.raises(TextError) as caught:
            door(config)
        assert str(caught.value).startswith(
            "180 of 200 source lines have no letters but differ from their targets, such as “1 2” "
            "and “2 1”."
        )
        assert "--set data.reading=exact" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "reading"), [(reverse, "exact"), (lambda line: f" {line} ", "text")]
)
def test_text_that_is_not_copied_or_is_its_own_translation_is_accepted(tmp_path, change, reading):
    text = numbers(tmp_path, change)
    config = load_config("tiny", [*SETTINGS, f"data.reading={reading}"])
    assert text.describe(config) == "200 pairs"
    assert text.learn(config).source_size


@pytest.mark.parametrize(("others", "is_refused"), [(9, True), (10, False)])
def test_a_tenth_of_the_pairs_is_too_many(others, is_refused):
    pairs = LetterlessPairs()
    assert len([*pairs.watch(iter([("12", "21"), *[("a", "b")] * others]))]) == others + 1
    with pytest.raises(TextError, match="1 of 10 source") if is_refused else nullcontext():
        pairs.require_few()
