from pathlib import Path
from typing import Any

import pytest

from heedful.data.cleaning.filter import PairFilter
from heedful.data.coverage import (
    input_warnings,
    unknown_parts,
    unknown_warning,
    untagged_warning,
)
from heedful.data.encoded.dataset import EncodedPairs
from heedful.data.encoded.encode import encode_corpus
from heedful.text.corpus import Corpus
from heedful.tokenization.from_files import tokenizer_from_files
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.tokenizer import Tokenizer
from heedful.tokenization.vocabulary import Vocabulary
from heedful.tokenization.vocabulary_model import VocabularyModel

SOURCE = ["the dog sees a cat"] * 5
TARGET = ["der Hund sieht eine Katze"] * 5


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=["character", "word-list", "codes"])
def tokenizer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Tokenizer:
    folder = tmp_path_factory.mktemp("learn")
    files = [write(folder / "learn.en", SOURCE)], [write(folder / "learn.de", TARGET)]
    options: dict[str, Any] = {
        "vocabulary_size": 100,
        "shared": False,
        "source_language": "en",
        "target_language": "de",
    }
    if request.param == "character":
        return Tokenizer.train(*files, kind="character", seed=1, **options)
    lines = "#version: 0.2\nt h\n" if request.param == "codes" else " ".join(SOURCE + TARGET)
    given = folder / "given"
    given.write_text(lines if request.param == "codes" else lines.replace(" ", "\n"), "utf-8")
    return tokenizer_from_files(given, *files, **options)


def encoded(
    tokenizer: Tokenizer, folder: Path, source: list[str], target: list[str]
) -> tuple[EncodedPairs, Tokenizer, Corpus]:
    corpus = Corpus((write(folder / "x.en", source),), (write(folder / "x.de", target),))
    return encode_corpus(corpus, tokenizer, PairFilter(99, None), folder / "ids"), tokenizer, corpus


def test_known_text_gives_no_warning(tokenizer: Tokenizer, tmp_path: Path) -> None:
    assert unknown_warning(*encoded(tokenizer, tmp_path, SOURCE, TARGET)) is None


def test_one_unknown_in_a_hundred_is_no_warning_and_more_is(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    source = [*SOURCE, "the dog sees Ж"]
    pairs = encoded(tokenizer, tmp_path, source * 1, TARGET + TARGET[:1])
    share = pairs[0].unknown_share["source"]
    warning = unknown_warning(*pairs)
    if share <= 0.01:
        assert warning is None
    else:
        assert warning is not None
        assert f"{share:.1%} of the source subwords (“Ж”) are unknown" in warning
        assert "target" not in warning and "\n" not in warning
    many = encoded(tokenizer, tmp_path, [*SOURCE, *["the dog sees Ж"] * 95], TARGET * 20)
    assert many[0].unknown_share["source"] > 0.01
    assert "“Ж”" in str(unknown_warning(*many))


def test_both_sides_and_the_most_frequent_are_named(tokenizer: Tokenizer, tmp_path: Path) -> None:
    source = ["я ё ю", "я ё", "я э ы ъ"]
    warning = unknown_warning(*encoded(tokenizer, tmp_path, source, ["ж", "ж ш", "ж"]))
    assert warning is not None
    assert "of the source subwords (“я”, “ё”, “ъ”, “ы”, “э”, …) and " in warning
    assert "of the target subwords (“ж”, “ш”) are unknown" in warning


def test_an_input_is_warned_of_from_a_tenth_on(tokenizer: Tokenizer) -> None:
    known = tokenizer.encode_source(SOURCE)
    assert input_warnings(SOURCE, known, tokenizer) == []
    assert input_warnings([], [], tokenizer) == []
    assert input_warnings([""], [[]], tokenizer) == []
    texts = ["the Ж", "Ж ж"]
    ids = tokenizer.encode_source(texts)
    numbers = [*ids[0], *ids[1]]
    (warning,) = input_warnings(texts, ids, tokenizer)
    assert "(“Ж”, “ж”) are unknown to this model" in warning
    assert warning.startswith(f"{numbers.count(1) / len(numbers):.0%} of the subwords")


def test_one_unknown_of_ten_in_a_line_is_warned_of_unless_words_are_the_vocabulary(
    tokenizer: Tokenizer,
) -> None:
    texts = [*SOURCE * 4, "", "the Ж"]
    lines = range(7, 7 + len(texts))
    warnings = input_warnings(texts, tokenizer.encode_source(texts), tokenizer, lines=lines)
    if tokenizer.kind == "word-list":
        assert warnings == []
    else:
        share = 1 / len(tokenizer.encode_source(["the Ж"])[0])
        assert warnings[0].startswith(
            f"{share:.0%} of the subwords of line 28 of the input (“Ж”) are unknown"
        )


@pytest.mark.parametrize(("known", "warned"), [(9, True), (10, False)])
def test_exactly_a_tenth_is_enough(tmp_path: Path, known: int, warned: bool) -> None:
    files = [write(tmp_path / "x.en", ["abcdefgh"])], [write(tmp_path / "x.de", ["ab"])]
    options: dict[str, Any] = {"source_language": "en", "target_language": "de", "seed": 1}
    tokenizer = Tokenizer.train(
        *files, kind="character", vocabulary_size=50, shared=False, **options
    )
    texts = ["a" * (known - 1) + "Ж"]  # and the mark of a word's beginning
    (row,) = ids = tokenizer.encode_source(texts)
    assert len(row) == known + 1
    assert bool(input_warnings(texts, ids, tokenizer)) == warned
    assert "(“Ж”)" in input_warnings(texts, ids, tokenizer, least=0.0)[0]


def test_a_language_tag_is_not_taken_for_unknown_text(tmp_path: Path) -> None:
    files = (
        [write(tmp_path / "x.en", [">>de<< ab", ">>fr<< ba"])],
        [write(tmp_path / "x.de", ["ab"])],
    )
    tokenizer = Tokenizer.train(
        *files,
        kind="character",
        vocabulary_size=50,
        shared=False,
        source_language="en",
        target_language="de",
        seed=1,
    )
    assert unknown_parts(tokenizer, [">>de<< abc", ">>fr<< a"], "source") == ["c"]
    assert unknown_parts(tokenizer, [">>"], "target") == [">"]


@pytest.mark.parametrize("cutter", ["spaces", "codes"])
def test_imported_vocabularies_of_words_are_treated_like_others(cutter: str) -> None:
    names = ["</s>", "<unk>", "<pad>", "the", "dog"]
    special = {"pad": "<pad>", "unknown": "<unk>", "end": "</s>"}
    id_mapping = IdMapping.of({name: n for n, name in enumerate(names)}, special, len(names))
    codes = b"#version: 0.2\nt h\nth e</w>\nd o\ndo g</w>\n" if cutter == "codes" else b""
    model = ImportedModel(id_mapping, cutter, codes)
    tokenizer = Tokenizer(model, source_language="en", target_language="de")
    assert unknown_parts(tokenizer, ["the dog", "the cat"], "source") == ["cat"]
    texts = [*["the dog"] * 20, "the Ж"]
    warnings = input_warnings(texts, tokenizer.encode_source(texts), tokenizer)
    assert bool(warnings) is (cutter == "codes")  # lines of words often have an unknown one


def of_words(*tags: str) -> Tokenizer:
    words = VocabularyModel(Vocabulary(["the", "dog"], tags))
    return Tokenizer(words, source_language="en", target_language="")


@pytest.mark.parametrize(
    ("tags", "lines", "warned"),
    [
        ([], ["the dog"], False),
        ([">>de<<"], ["the dog", ">>de<< the dog"], False),
        ([">>de<<", ">>fr<<"], [">>de<< the dog", "", ">>fr<< dog"], False),
        ([">>de<<", ">>fr<<"], [">>de<< the dog", "the dog"], True),
        ([">>de<<", ">>fr<<"], ["the >>de<< dog"], True),
        ([">>de<<", ">>fr<<"], [], False),
    ],
)
def test_a_line_without_a_tag_is_warned_of_where_several_tell_the_language(
    tags: list[str], lines: list[str], warned: bool
) -> None:
    tokenizer = of_words(*tags)
    warning = untagged_warning(tokenizer.encode_source(lines), tokenizer)
    assert (warning is not None) is warned
    if warning is not None:
        assert "(>>de<<, >>fr<<)" in warning


def test_many_tags_are_not_all_named_and_both_warnings_are_given() -> None:
    tokenizer = of_words(*(f">>x{number}<<" for number in range(40)))
    unknown, untagged = input_warnings(["Ж Ж"], tokenizer.encode_source(["Ж Ж"]), tokenizer)
    assert "are unknown to this model" in unknown
    assert ">>x4<<, …)" in untagged and ">>x5<<" not in untagged
