import pytest

from heedful.text.reading.line import LineReader
from heedful.text.reading.terms import Terms
from heedful.text.reading.vocabulary import SourceVocabulary
from tests.support.vocabularies import LETTERS, small_vocabulary, translate


def restored(line, terms=None, aligns=True, reads_text=True):
    read = LineReader(small_vocabulary(), terms, reads_text, aligns).read(line)
    if read.is_copied:
        return read.copy()
    text, words, links = translate(read.text)
    return read.restore(text, words if aligns else [], links if aligns else [])


@pytest.mark.parametrize(
    ("line", "translation"),
    [
        ("the big red dog", "le gros chien rouge"),
        ("the big red dog 👍 sleeps.", "le gros chien rouge 👍 dort."),
        ("the big dog 👍.", "le gros chien 👍."),
        ("“the dog” sleeps", "“le chien” dort"),
        ("the dog→boy 👍", "le chien→garçon 👍"),
        ("the big <b>red</b> dog sleeps", "le gros <b>chien rouge</b> dort"),
        ("{{a}}, the {{b}} big dog, {{c}}.", "{{a}}, le {{b}} gros chien, {{c}}."),
        ("THE BIG RED DOG 👍 SLEEPS", "LE GROS CHIEN ROUGE 👍 DORT"),
        ("The Big Red Dog", "Le Gros Chien Rouge"),
        ("The dog sleeps", "Le chien dort"),
        ("the BIG red dog", "le GROS chien rouge"),
        ("\ufeff12\u00a0%", "12\u00a0%"),
        ("👍", "👍"),
    ],
)
def test_what_was_taken_from_a_line_is_put_back(line, translation):
    assert restored(line).text == translation


def test_without_links_what_stood_inside_stands_at_the_end_and_a_note_says_so():
    result = restored("{{a}} the dog {{b}} sleeps {{c}}", aligns=False)
    assert result.text == "{{a}} le chien dort {{b}} {{c}}"
    assert [held.where for held in result.note.held] == ["edge", "end", "edge"]


def test_a_row_of_what_is_held_is_linked_word_by_word():
    result = restored(f"the dog {'{0} ' * 500}sleeps")
    assert result.text == f"le chien {'{0} ' * 500}dort"
    assert result.links == tuple((place, place) for place in range(503))


def test_links_count_the_words_of_the_line_and_of_the_text():
    result = restored("the red dog 👍 sleeps")
    assert result.words == ("le", "chien", "rouge", "👍", "dort")
    assert result.links == ((0, 0), (1, 2), (2, 1), (3, 3), (4, 4))


@pytest.mark.parametrize("reads_text", [True, False])
def test_terms_replace_their_translations(reads_text):
    terms = Terms.of({"red dog": "rouquin"}, ["boy"])
    result = restored("the red dog sleeps, my boy.", terms, reads_text=reads_text)
    assert result.text == "le rouquin dort, mon boy."
    held = restored("the red dog sleeps", terms, aligns=False, reads_text=reads_text)
    assert held.text.count("rouquin") == 1 and "chien" not in held.text


def test_numbers_and_loops_are_noted():
    letters = set("abcdefghijklmnopqrstuvwxyz0123456789")
    read = LineReader(small_vocabulary(letters=letters)).read("the dog has 23 bones")
    result = read.restore("le chien le chien le chien a 24 os", (), ())
    assert result.text == "le chien a 24 os"
    assert result.note.numbers == ("23",) and result.note.loops == 1


@pytest.mark.parametrize(
    ("source", "translation", "links", "glossary", "expected"),
    [
        (
            "日本語の文です。",
            "It is a sentence.",
            [(0, j) for j in range(4)],
            {"日本語": "Nihongo"},
            "It is a sentence. Nihongo",
        ),
        (
            "the dog sleeps",
            "犬は眠っている。",
            [(i, 0) for i in range(3)],
            {"dog": "ワンちゃん"},
            "犬は眠っている。 ワンちゃん",
        ),
        (
            "the dog/cat sleeps",
            "le chien/chat dort",
            [(i, i) for i in range(3)],
            {"dog": "toutou"},
            "le chien/chat dort toutou",
        ),
    ],
)
def test_a_term_never_replaces_what_other_words_say(source, translation, links, glossary, expected):
    reader = LineReader(SourceVocabulary(lambda texts: [1] * len(texts)), Terms.of(glossary, None))
    restored_line = reader.read(source).restore(translation, translation.split(" "), links)
    assert restored_line.text == expected


def test_the_number_of_a_compound_stands_alone_in_the_translation():
    vocabulary = small_vocabulary(letters=LETTERS | {"-"})
    read = LineReader(vocabulary).read("the 3-red dog sleeps")
    assert read.text == "the red dog sleeps"
    result = read.restore(*translate(read.text))
    assert result.text == "le 3 chien rouge dort"
    assert [(piece.text, piece.put) for piece in result.note.held] == [("3-", "3")]
    assert LineReader(vocabulary).read("the 3-red-dog").shown == "the 3-red-dog"


def test_a_line_in_capitals_is_given_back_by_the_rules_of_the_target_language():
    read = LineReader(small_vocabulary()).read("THE BIG DOG", "tr")
    assert read.restore("iri köpek", ("iri", "köpek"), ()).text == "İRİ KÖPEK"
    read = LineReader(small_vocabulary()).read("THE BIG DOG", "fr")
    assert read.restore("iris", ("iris",), ()).text == "IRIS"
