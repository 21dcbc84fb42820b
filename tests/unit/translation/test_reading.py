from dataclasses import replace
from functools import partial

import pytest

from heedful.bench.random_run import make_random_run
from heedful.config.schema import RunConfig
from heedful.data.coverage import WORD_KINDS
from heedful.errors import TextError
from heedful.text.blanks import read_source
from heedful.text.reading.line import LineReader
from heedful.text.reading.terms import Terms
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.tokenizer import Tokenizer
from heedful.tokenization.vocabulary import Vocabulary
from heedful.tokenization.vocabulary_model import VocabularyModel
from heedful.translation.aligner import segment_source
from heedful.translation.reading import ReadLines, TextReader, vocabulary_of, without_links
from heedful.translation.result import Translation, WordAlignment

LINES = ["THE  dog 👍", "", "12", " {{x}} the dog sleeps. a cat "]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    for language in ("en", "fr"):
        text = "the dog sleeps.\na cat sleeps in the sun.\n" * 9
        (folder / f"t.{language}").write_text(text, encoding="utf-8")
    return Tokenizer.train(
        [folder / "t.en"],
        [folder / "t.fr"],
        kind="bpe",
        vocabulary_size=40,
        shared=True,
        source_language="en",
        target_language="fr",
        seed=1,
    )


def reader(tokenizer, reads_text=True, longest=50, aligns=True):
    return TextReader(
        tokenizer,
        lambda lines: list(map(read_source, lines)),
        reads_text=reads_text,
        longest=longest,
        aligns=aligns,
    )


def translated(rows):
    return [Translation(row.upper(), -1.0, (row,), -1.0) for row in rows]


def test_exact_reading_changes_nothing(tokenizer):
    read = reader(tokenizer, reads_text=False).read(LINES)
    assert read.rows == list(map(read_source, LINES)) and read.lines == [0, 1, 2, 3]
    assert read.linked == []
    results = translated(read.rows)
    assert all(map(lambda one, other: one is other, read.restored(results), results))


def test_text_reading_shows_the_model_what_it_can_translate(tokenizer):
    read = reader(tokenizer).read(LINES)
    assert read.rows == ["the dog", "", "", "the dog sleeps. a cat"]
    results = read.restored([Translation(row, 0.0, (), 0.0) for row in read.rows])
    assert [result.text for result in results] == [
        "THE dog 👍".replace("THE", "the"),
        "",
        "12",
        "{{x}} the dog sleeps. a cat",
    ]
    assert results[2].reading is not None and results[2].reading.copied
    assert results[1].reading is None


def test_a_line_that_is_too_long_is_split_at_ends_of_sentences(tokenizer):
    line = "the dog sleeps. a cat sleeps. " * 8
    read = reader(tokenizer, longest=12).read(["a cat", line, "the dog"])
    assert read.lines == [0, *[1] * 16, 2]
    assert set(read.rows[1:-1]) == {"the dog sleeps.", "a cat sleeps."}
    result = read.restored(translated(read.rows))[1]
    assert result.text == line.upper() and result.reading is not None
    assert result.reading.sentences == 16
    assert read.spread("x", ["a", "b", "c"], "") == ["a", "b", *[""] * 15, "c"]
    assert read.repeat("x", ["a", "b", "c"]) == ["a", *["b"] * 16, "c"]
    assert read.places == [0, *range(16), 0]
    for call in (read.repeat, partial(read.spread, empty="")):
        assert call("x", entries=None) is None
        with pytest.raises(TextError, match=r"x must have one entry .* 18 for 3 lines"):
            call("x", entries=["a"] * 18)  # as many as rows


def test_no_text_is_prepared_twice(tokenizer, monkeypatch):
    texts, read = [], LineReader.read
    monkeypatch.setattr(
        LineReader, "read", lambda self, text, *rest: texts.append(text) or read(self, text, *rest)
    )
    fitting, long = "the dog sleeps", "the dog sleeps. a cat sleeps in the sun. " * 2
    assert len(reader(tokenizer, longest=12).read([fitting, long]).rows) > 2
    assert len(texts) == len(set(texts)) > 3


def test_a_line_that_is_too_long_may_be_cut(tokenizer):
    line = "the dog sleeps. a cat sleeps. " * 8
    read = reader(tokenizer, longest=12).read([line], long_lines="cut")
    assert read.rows == [line.strip()]
    (result,) = read.restored(translated(read.rows))
    assert result.reading is not None and result.reading.cut


def test_a_line_is_not_split_inside_what_is_held(tokenizer):
    held = ["{{ the dog. A cat }}", "https://x.org/a.b,c;d", "St. Gallen"]
    terms = Terms.of({"St. Gallen": "Saint-Gall"}, None)
    line = "".join(f"the dog sleeps in {part} too, a cat in the sun. " for part in held)
    read = reader(tokenizer, longest=12, aligns=False).read([line], terms)
    (result,) = read.restored([Translation(row, 0.0, (), 0.0) for row in read.rows])
    notes = [piece.text for piece in result.reading.held]
    assert notes == held and result.reading.sentences > 3
    assert result.text.count(held[0]) == result.text.count(held[1]) == 1
    assert result.text.count("Saint-Gall") == 1


def test_a_prefix_before_every_line_counts_as_length(tokenizer):
    tokenizer = tokenizer.changed(source_prefix="a cat in the sun. ")
    text = reader(tokenizer, longest=15)
    fits = text.cut_rule(None, "")
    for words in range(1, 20):
        line = " ".join(["a", "dog", "the"][number % 3] for number in range(words))
        rows = text.read([line]).rows
        assert all(len(ids) <= 15 for ids in tokenizer.encode_source(rows))
        (ids,) = tokenizer.encode_source([line])
        assert fits(line) == (len(ids) < 15)
        assert (len(rows) == 1) == (len(ids) <= 15)


def test_what_is_held_does_not_count_as_length(tokenizer):
    line = f"the dog {'{{' + 'x. ' * 90 + '}}'} sleeps"
    assert reader(tokenizer, longest=12).read([line]).rows == ["the dog sleeps"]


def test_terms_are_found_in_exact_reading_too(tokenizer):
    terms = Terms.of({"dog": "Hund"}, None)
    read = reader(tokenizer, reads_text=False).read(["the dog 12"], terms)
    assert read.rows == ["the dog 12"] and read.linked == [0]
    alignment = WordAlignment(("the", "dog", "12"), ("Le", "chien", "12"), ((0, 0), (1, 1), (2, 2)))
    row = Translation("Le chien 12", 0.0, (), 0.0, alignment=alignment)
    (result,) = read.restored([replace(row, alternatives=(row,))])
    assert result.text == result.alternatives[0].text == "Le Hund 12"
    assert without_links(result).alignment is None


class _Bytes:
    """A model of letters that spells other characters by bytes."""

    kind, tags, size = "bpe", {}, 40

    def piece(self, number):
        return "<0x0A>" if number >= 30 else f"p{number}"

    def encode(self, texts):
        return [[4 if sign.isascii() else 35 for sign in text] for text in texts]

    def sample(self, texts, rate, generator):
        return self.encode(texts)

    def decode(self, ids):
        return ""

    def files(self):
        return {}


def test_bytes_of_a_character_are_no_knowledge_of_it(tokenizer):
    letters = vocabulary_of(tokenizer)
    assert letters.lacks("犬") and not letters.lacks("d")
    spelled = vocabulary_of(Tokenizer(_Bytes(), source_language="", target_language=""))
    assert spelled.lacks("犬") and not spelled.lacks("d")


def test_a_vocabulary_of_words_knows_the_letters_of_its_words(tmp_path):
    make_random_run(tmp_path, RunConfig().with_settings({"model.d_model": 16}), 50)
    words = Tokenizer.load(tmp_path)
    assert words.kind in WORD_KINDS
    assert vocabulary_of(words).lacks("犬") and not vocabulary_of(words).lacks("w")


def tokenizer_of_pieces(kind, pieces):
    """A tokenizer with a tag and the given pieces; an imported one also has a nameless row."""
    codes = b"#version: 0.2\ne r\n" if kind.endswith("codes") else b""
    if kind == "codes":
        model = VocabularyModel(Vocabulary(pieces, [">>fr<<"]), codes)
    else:
        names = ["</s>", "<unk>", "<pad>", ">>fr<<", *pieces]
        special = {"pad": "<pad>", "unknown": "<unk>", "end": "</s>"}
        numbers = {name: number for number, name in enumerate(names)}
        id_mapping = IdMapping.of(numbers, special, len(names) + 1)
        model = ImportedModel(id_mapping, kind.removeprefix("imported-"), codes)
    return Tokenizer(model, source_language="en", target_language="fr")


@pytest.mark.parametrize(
    ("kind", "pieces"),
    [
        ("codes", ["v@@", "er@@", "y"]),
        ("imported-codes", ["v@@", "er@@", "y"]),
        ("imported-spaces", ["very"]),
    ],
)
def test_a_letter_is_known_wherever_in_a_word_it_is(kind, pieces):
    tokenizer = tokenizer_of_pieces(kind, pieces)
    assert tokenizer.kind == kind
    assert reader(tokenizer).read([">>fr<< very 犬"]).rows == [">>fr<< very"]
    vocabulary = vocabulary_of(tokenizer)
    assert not vocabulary.lacks_any("very")
    # neither the tag, nor the separator, nor a row without a name
    assert all(map(vocabulary.lacks, "f@<>0123456789"))


@pytest.mark.parametrize(
    ("kind", "pieces"),
    [
        ("codes", ["v@@", "er@@", "y"]),
        ("imported-codes", ["v@@", "er@@", "y"]),
        ("imported-spaces", ["very"]),
    ],
)
def test_subwords_are_matched_with_words(kind, pieces):
    tokenizer = tokenizer_of_pieces(kind, pieces)
    texts = ["very very", ">>fr<< very"]
    if kind == "imported-codes":  # imported models also accept a tag without a space after it
        texts.append(">>fr<<very very")
    for text in texts:
        (ids,) = tokenizer.encode_source([text])
        side = segment_source(tokenizer, text, ids)
        assert side.words == text.split(" ")
        assert [unit.words for unit in side.units] == [range(1), range(1, 2)]
        assert [place for unit in side.units for place in unit.pieces] == [*range(len(ids))]


def test_no_line_is_no_row():
    assert ReadLines((), ()).restored([]) == []


def test_a_prefix_that_cannot_be_used_is_reported(tokenizer):
    text, messages = reader(tokenizer), []
    read = text.read(["THE dog", "12"])
    prefixes = text.prefixes(read.rows, ["the", "a"], [1, 2], messages.append)
    assert messages == ["line 2 has nothing to translate, so its target prefix is not used."]
    rows = [Translation(row, 0.0, (), 0.0) for row in read.rows]
    assert [result.text for result in read.restored(rows, prefixes)] == ["the dog", "12"]
    assert reader(tokenizer, reads_text=False).prefixes([""], ["a"], [1], messages.append) == []
    assert len(messages) == 1
