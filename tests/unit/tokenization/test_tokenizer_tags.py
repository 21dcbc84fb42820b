import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.toy_grammar.corpus import split_pairs
from heedful.errors import TextError, TokenizerError
from heedful.tokenization.from_files import tokenizer_from_files
from heedful.tokenization.special_symbols import split_tag
from heedful.tokenization.tokenizer import END, START, UNKNOWN, Tokenizer

PLAIN = [pair[0] for pair in split_pairs(300, 1, seed=1)[0]]
TAGS = (">>de<<", ">>pt_BR<<", ">>zh-Hans<<")
TAGGED = [f"{TAGS[n % 3]} {line}" for n, line in enumerate(PLAIN)] + ["a > b", ">>x < <"]
KINDS = ["bpe", "unigram", "character", "word", "codes", "word-list"]
CODES = "#version: 0.2\nt h\nth e</w>\nd o\ndo g</w>\n> >\n>> d\n>>d e\n>>de <\n>>de< <</w>\n"


def made(folder: Path, kind: str, lines: list[str], shared: bool = True) -> Tokenizer:
    source, target = folder / "text.en", folder / "text.de"
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    target.write_text("".join(f"{line} ä\n" for line in PLAIN), encoding="utf-8")
    words = sorted({word for line in lines for word in line.split()})
    given_file = folder / "given"
    given_file.write_text(CODES if kind == "codes" else "\n".join(words), encoding="utf-8")
    sizes = {"bpe": 120, "unigram": 70, "character": 80, "word": 40}
    options: dict[str, Any] = {
        "vocabulary_size": sizes.get(kind, 1000),
        "shared": shared,
        "source_language": "en",
        "target_language": "x",
    }
    if kind in sizes:
        return Tokenizer.train([source], [target], kind=kind, seed=1, **options)
    return tokenizer_from_files(given_file, [source], [target], complete=True, **options)


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Tokenizer:
    return made(tmp_path_factory.mktemp("tags"), request.param, TAGGED)


def test_a_tag_before_a_line_is_one_symbol_before_its_subwords(tokenizer: Tokenizer) -> None:
    assert tokenizer.tags == TAGS
    for tag in TAGS:
        for line in ("the dog", "", " the  dog", ">>de<< the dog", ">>none<< dog"):
            (alone,), (tagged,) = (
                tokenizer._source.encode([line]),
                tokenizer.encode_source([f"{tag} {line}"]),
            )
            assert tagged[1:] == alone
            assert tokenizer.pieces_source(tagged[:1]) == ([tag] if line else [])


def test_the_tag_stays_where_subwords_are_sampled(tokenizer: Tokenizer) -> None:
    if tokenizer.kind in ("bpe", "unigram", "codes"):
        (ids,) = tokenizer.encode_source([f"{TAGS[1]} the dog"], 0.3, Random(1))
        assert tokenizer.pieces_source(ids[:1]) == [TAGS[1]]
        assert tokenizer.decode(ids) == "the dog"


@given(
    text=st.lists(st.sampled_from([*TAGS, "<s>", " ", "the", "dog", ">>", "<<", "de", "> >"])).map(
        "".join
    )
)
def test_text_never_produces_a_tag(tokenizer: Tokenizer, text: str) -> None:
    numbers = set(tokenizer._source.tags.values())
    tag, rest = split_tag(text)
    (source,), (target,) = tokenizer.encode_source([text]), tokenizer.encode_target([text])
    assert not numbers & set(target)
    assert not numbers & set(source[1:] if tag else source)
    if tag and rest.strip():
        assert source[0] == tokenizer._source.tags[tag]


def test_a_tag_before_nothing_is_an_empty_line(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode_source([">>de<< ", ">>de<<   ", ""]) == [[], [], []]
    # Without a space behind it a tag is text.
    (ids,) = tokenizer.encode_source([">>de<<"])
    assert tokenizer._source.tags[">>de<<"] not in ids


def test_an_unknown_tag_is_named_with_the_known_ones(tokenizer: Tokenizer) -> None:
    with pytest.raises(TextError) as caught:
        tokenizer.encode_source([">>de<< the dog", ">>fr<< the dog sees", "the"])
    message = str(caught.value)
    assert "text 2 of 3" in message and "“>>fr<< the dog sees”" in message
    assert all(tag in message for tag in TAGS)


def test_a_tag_among_the_target_is_not_shown(tokenizer: Tokenizer) -> None:
    (ids,) = tokenizer.encode_target(["the the"])
    tag = tokenizer._target.tags[">>de<<"]
    assert tokenizer.decode([START, tag, *ids, tag, END]) == "the the"
    assert tokenizer.pieces_target([tag]) == [">>de<<"]


def test_tags_are_there_again_when_loaded(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert loaded.tags == TAGS
    assert loaded.encode_source(TAGGED) == tokenizer.encode_source(TAGGED)
    # Who knows no tags would take them for text.
    assert json.loads((tmp_path / "tokenizer.json").read_text("utf-8"))["format"] == 2


@pytest.mark.parametrize("kind", KINDS)
def test_without_tags_in_the_text_a_tag_is_text(tmp_path: Path, kind: str) -> None:
    tokenizer = made(tmp_path, kind, [*PLAIN, "> < d e f", "x >>de<< dog"])
    assert tokenizer.tags == ()
    line = ">>de<< dog"
    assert tokenizer.encode_source([line]) == tokenizer.encode_target([line])
    if kind not in ("word", "word-list"):
        assert tokenizer.decode(tokenizer.encode_source([line])[0]) == line
    tokenizer.save(tmp_path)
    written = json.loads((tmp_path / "tokenizer.json").read_text("utf-8"))["format"]
    assert written == (2 if kind in ("codes", "word-list") else 1)


@pytest.mark.parametrize("kind", ["bpe", "codes"])
def test_separate_vocabularies_have_tags_on_the_source_side_alone(
    tmp_path: Path, kind: str
) -> None:
    tokenizer = made(tmp_path, kind, TAGGED, shared=False)
    assert tokenizer.tags == TAGS
    assert not tokenizer._target.tags
    assert UNKNOWN not in tokenizer.encode_target(["the dog ä"])[0]


def test_the_subwords_are_those_of_the_text_without_its_tags(tmp_path: Path) -> None:
    pieces = []
    for name, lines in (("plain", PLAIN), ("tagged", [f">>de<< {line}" for line in PLAIN])):
        (tmp_path / name).mkdir()
        learned = made(tmp_path / name, "character", lines)
        pieces.append(set(learned.pieces_source(range(learned.source_size))))
    assert pieces[1] - pieces[0] == {">>de<<"}


def test_a_vocabulary_without_room_for_the_tags_is_answered_with_the_size_it_needs(
    tmp_path: Path,
) -> None:
    path = tmp_path / "text.en"
    path.write_text("".join(f">>l{n}<< ab\n" for n in range(20)), encoding="utf-8")

    def learned(kind: str, size: int) -> Tokenizer:
        return Tokenizer.train(
            [path],
            [path],
            kind=kind,
            vocabulary_size=size,
            shared=False,
            source_language="en",
            target_language="en",
            seed=1,
        )

    with pytest.raises(TokenizerError, match="at least 27 ") as caught:
        learned("character", 20)
    assert "\n" not in str(caught.value)
    with pytest.raises(TokenizerError, match="at least 27 "):
        learned("bpe", 20)


@pytest.mark.parametrize(
    ("line", "tag"),
    [
        (">>a<< b", ">>a<<"),
        (">>a-B_9<<  b", ">>a-B_9<<"),
        (" >>a<< b", ""),
        (">>a b<< c", ""),
        (">><< c", ""),
        (">>a<<b", ""),
        (">>a<<\tb", ""),
        (">>>a<< b", ""),
    ],
)
def test_what_a_tag_looks_like(line: str, tag: str) -> None:
    assert split_tag(line) == (tag, line[len(tag) + 1 :] if tag else line)
