"""From subwords to words and from attention to links, against plain loops."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.alignment.from_attention import Extraction, attention_links, rate_layers, word_weights
from heedful.alignment.links import GoldLinks
from heedful.alignment.words import CONTINUED, Unit, units_of, units_of_words
from heedful.errors import SettingError
from heedful.tokenization.tokenizer import Tokenizer
from heedful.tokenization.train import SubwordOptions
from heedful.translation.aligner import segment_ids, segment_source, segment_text

KINDS = {"bpe": 60, "unigram": 26, "character": 60, "word": 12}


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    file = tmp_path_factory.mktemp("text") / "text.en"
    lines = ["the big dog sees the small dogs", "a dogged cat eats", "the cats see a bigger cat"]
    file.write_text("\n".join(lines * 30) + "\n", encoding="utf-8")
    return {
        kind: Tokenizer.train(
            [file],
            [file],
            kind=kind,
            vocabulary_size=size,
            shared=True,
            source_language="en",
            target_language="en",
            seed=0,
        )
        for kind, size in KINDS.items()
    }


WORDS = ["the", "dog", "cats", "big", "bigger", "zebra", "Zoë", "☃", "", "\t", "dog☃cat", "seeds"]


@settings(max_examples=40)
@given(st.sampled_from(list(KINDS)), st.lists(st.sampled_from(WORDS), max_size=8))
def test_subwords_spell_the_words_between_spaces(tokenizers, kind, words):
    tokenizer, text = tokenizers[kind], " ".join(words)
    (ids,) = tokenizer.encode_source([text])
    side = segment_text(tokenizer.models[0], text, ids, tokenizer.pieces_source(ids))
    assert side.words == [word for word in words if word]
    counted = [word for unit in side.units for word in unit.words]
    assert counted == list(range(len(side.words)))
    pieces = [piece for unit in side.units for piece in unit.pieces]
    assert pieces == sorted(set(pieces))
    written = segment_ids(tokenizer, ids)
    if kind == "word":
        assert [word for word in written.words if word != "⁇"] == [
            word for word in side.words if word in ("the", "dog", "cats", "big", "bigger")
        ]
        return
    assert written.units == side.units
    assert [word == "⁇" or "⁇" in word for word in written.words] == [
        number in side.unknown for number in range(len(side.words))
    ]
    for spelled, word in zip(written.words, side.words, strict=True):
        assert re.fullmatch(".+".join(map(re.escape, spelled.split("⁇"))), word)


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("the big\u00a0dog sees", {0: "▁the", 1: "▁big▁dog", 2: "▁sees"}),
        ("the\u200bbig\u3000dog sees", {0: "▁the▁big▁dog", 1: "▁sees"}),
        ("the \u0001 big dog", {0: "▁the", 2: "▁big", 3: "▁dog"}),
        ("\u0001 the", {1: "▁the"}),
    ],
)
def test_spaces_of_the_models_normalization_end_no_word(tmp_path, text, spelled):
    (tmp_path / "text").write_text("the big dog sees the small dogs\n" * 30, encoding="utf-8")
    tokenizer = Tokenizer.train(
        *[[tmp_path / "text"]] * 2,
        kind="bpe",
        vocabulary_size=40,
        shared=True,
        source_language="",
        target_language="",
        seed=0,
        options=SubwordOptions(normalization="nmt_nfkc"),
    )
    (ids,) = tokenizer.encode_source([text])
    side = segment_source(tokenizer, text, ids)
    assert list(side.words) == text.split(" ")
    pieces = tokenizer.pieces_source(ids)
    found = [(*u.words, "".join(pieces[u.pieces.start : u.pieces.stop])) for u in side.units]
    assert found == list(spelled.items())
    # of a line that was cut, too
    cut = segment_source(tokenizer, text, ids[: side.units[0].pieces.stop])
    assert cut.units == side.units[:1]


def test_spaces_that_begin_no_word_are_in_no_unit():
    pieces = ["▁", "▁the", "▁", "▁", "☃", "s", "▁"]
    assert units_of(pieces) == [Unit(range(1, 2), range(1)), Unit(range(3, 6), range(1, 2))]
    assert units_of(["dog", "s", "▁the"]) == [
        Unit(range(2), range(1)),
        Unit(range(2, 3), range(1, 2)),
    ]
    assert units_of([]) == []


@settings(max_examples=40)
@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), max_size=5))
def test_subwords_of_codes_go_on_until_one_has_no_mark(words):
    pieces = [letter + "@@" for word in words for letter in (*word[:-1], word[-1] + "|")]
    pieces = [piece.replace("|@@", "") for piece in pieces]
    units = units_of(pieces, CONTINUED)
    assert [unit.words for unit in units] == [range(i, i + 1) for i in range(len(words))]
    spelled = ["".join(pieces[i].removesuffix("@@") for i in unit.pieces) for unit in units]
    assert spelled == ["".join(word) for word in words]
    assert " ".join(spelled) == re.sub("@@ ", "", " ".join(pieces))


def test_an_unknown_symbol_stands_for_the_words_between_known_ones():
    words = ["the", "zebra", "herd", "sees", "Zoë"]
    pieces = ["▁the", "<unk>", "▁sees", "<unk>"]
    assert [list(unit.words) for unit in units_of_words(pieces, words)] == [[0], [1, 2], [3], [4]]
    # A list of words has a symbol for each.
    pieces = ["the", "<unk>", "<unk>", "sees", "<unk>"]
    units = units_of_words(pieces, words)
    assert [list(unit.words) for unit in units] == [[0], [1], [2], [3], [4]]
    # Two spaces in a row are an unknown symbol of sentencepiece that stands for no word.
    units = units_of_words(["▁the", "<unk>", "▁sees"], ["the", "sees"])
    assert units == [Unit(range(1), range(1)), Unit(range(2, 3), range(1, 2))]


def test_words_that_were_cut_off_are_in_no_unit():
    words = ["the", "cat", "sees", "the", "dog"]
    assert [list(u.words) for u in units_of_words(["▁the", "▁cat"], words)] == [[0], [1]]


@st.composite
def attention(draw):
    """Draw a pair's words in subwords, and weights with one more column for the end symbol."""
    cuts = st.lists(st.integers(1, 3), min_size=1, max_size=5)
    sides = []
    for lengths in (draw(cuts), draw(cuts)):
        starts = np.cumsum([0, *lengths])
        sides.append(
            [Unit(range(starts[i], starts[i + 1]), range(i, i + 1)) for i in range(len(lengths))]
        )
    sources, targets = (side[-1].pieces.stop for side in sides)
    generator = np.random.default_rng(draw(st.integers(0, 9999)))
    cross = generator.dirichlet(np.full(sources + 1, 0.3), size=(3, 2, targets + 1))
    return cross.astype(np.float32), *sides


def slow_links(cross, source, target, layer, head, shift, threshold):
    """Read links off one number at a time."""
    found = set()
    for t, looking in enumerate(target):
        shares = []
        for looked_at in source:
            share = 0.0
            for row in looking.pieces:
                for column in looked_at.pieces:
                    heads = [head - 1] if head else range(cross.shape[1])
                    for h in heads:
                        share += cross[layer - 1, h, row + shift, column] / len(heads)
            shares.append(share / len(looking.pieces))
        for s, share in enumerate(shares):
            if share >= threshold if threshold else s == shares.index(max(shares)):
                found.add((s, t))
    return found


@settings(max_examples=40)
@given(
    attention(),
    st.integers(1, 3),
    st.integers(0, 2),
    st.booleans(),
    st.sampled_from([0.0, 0.15, 0.5]),
)
def test_links_are_those_of_plain_loops(drawn, layer, head, shift, threshold):
    cross, source, target = drawn
    found = attention_links(cross, source, target, Extraction(layer, head, shift, threshold))
    assert found == slow_links(cross, source, target, layer, head, shift, threshold)


def test_rows_of_word_weights_are_shares_of_a_look():
    cross = np.random.default_rng(0).dirichlet(np.ones(4), size=(1, 1, 6)).astype(np.float32)
    units = [Unit(range(2), range(1)), Unit(range(2, 4), range(1, 2))]
    weights = word_weights(cross[0, 0, :4], units, units)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-6)


def test_an_unknown_symbol_that_stands_for_two_words_is_linked_to_both():
    source = [Unit(range(1), range(1)), Unit(range(1, 2), range(1, 3))]
    target = [Unit(range(1), range(1))]
    cross = np.array([[[[0.2, 0.7, 0.1], [0.5, 0.5, 0.0]]]], dtype=np.float32)
    assert attention_links(cross, source, target, Extraction()) == {(1, 0), (2, 0)}


def test_empty_sides_have_no_links():
    assert attention_links(np.zeros((1, 1, 1, 3), np.float32), [], [], Extraction()) == frozenset()


@pytest.mark.parametrize(("layers", "place"), [(1, 0), (2, 1), (4, 3), (6, 4), (12, 10)])
def test_the_default_is_the_penultimate_layer_of_a_deep_model(layers, place):
    cross = np.random.default_rng(0).random((layers, 2, 4, 3), dtype=np.float32)
    expected = cross[place].mean(axis=0)[:-1]
    np.testing.assert_array_equal(Extraction().weights(cross), expected)
    np.testing.assert_array_equal(Extraction(layer=-1).weights(cross), cross[-1].mean(0)[:-1])
    mean = Extraction(layer="mean").weights(cross)
    np.testing.assert_allclose(mean, cross.mean((0, 1))[:-1], rtol=1e-6)


def test_the_layer_that_aligns_is_found():
    """Plant the links of each pair in the rows that read, of the second of three layers."""
    generator = np.random.default_rng(3)
    pairs = []
    for size in (3, 5, 6, 4):
        order = generator.permutation(size)
        cross = generator.dirichlet(np.ones(size + 1), size=(3, 2, size + 1)).astype(np.float32)
        for place, looked_at in enumerate(order):
            cross[1, :, place + 1] = 0.01
            cross[1, :, place + 1, looked_at] = 1.0
        words = [Unit(range(i, i + 1), range(i, i + 1)) for i in range(size)]
        links = frozenset((int(s), t) for t, s in enumerate(order))
        pairs.append((cross, words, words, GoldLinks(links, links)))
    rated = rate_layers(pairs)
    assert len(rated) == 6
    (best, counts), *others = rated.items()
    assert best == Extraction(layer=2, shift=True)
    assert (counts.error_rate, counts.predicted) == (0.0, 18)
    assert all(other.error_rate > 0.4 for _, other in others)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Extraction()),
        ("layer=5", Extraction(layer=5)),
        ("layer=mean", Extraction(layer="mean")),
        ("layer=-1,shift", Extraction(layer=-1, shift=True)),
        ("threshold=0.25,head=3", Extraction(head=3, threshold=0.25)),
    ],
)
def test_an_extraction_is_read_and_written(text, expected):
    assert Extraction.parse(text) == expected
    assert Extraction.parse(str(expected)) == expected


WRONG = (
    "layer=0 layer layer=two head=0 head=-1 shift=yes threshold=0 threshold=1.5 threshold=nan "
    "layer=1,layer=2 depth=3 penultimate"
)


@pytest.mark.parametrize("text", WRONG.split())
def test_what_is_no_extraction_is_refused(text):
    with pytest.raises(SettingError, match="must be valid, distinct and separated by commas"):
        Extraction.parse(text)


def test_layers_and_heads_that_a_model_lacks_are_refused():
    Extraction.parse("layer=-2,head=4").check(layers=2, heads=4)
    for text in ("layer=3", "layer=-3"):
        with pytest.raises(SettingError, match="from 1 to 2, or from -1"):
            Extraction.parse(text).check(layers=2, heads=4)
    with pytest.raises(SettingError, match="a head from 1 to 4, but head=5"):
        Extraction.parse("head=5").check(layers=2, heads=4)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character"])
def test_words_of_a_prefix_are_none_of_the_line(tokenizers, kind):
    plain = tokenizers[kind]
    tokenizer = Tokenizer(
        plain.models[0], source_language="en", target_language="en", source_prefix="see a cat "
    )
    (ids,), (bare,) = tokenizer.encode_source(["the dogs"]), plain.encode_source(["the dogs"])
    before = len(ids) - len(bare)
    assert before > 0
    assert ids[before:] == bare
    side, alone = (segment_source(t, "the dogs", n) for t, n in ((tokenizer, ids), (plain, bare)))
    assert list(side.words) == list(alone.words) == ["the", "dogs"]
    assert [unit.words for unit in side.units] == [unit.words for unit in alone.units]
    moved = [unit.pieces.start - before for unit in side.units]
    assert moved == [unit.pieces.start for unit in alone.units]
