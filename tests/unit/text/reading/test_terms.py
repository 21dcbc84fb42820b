from collections import ChainMap

import pytest

from heedful.errors import TextError
from heedful.text.reading.letter_case import Languages
from heedful.text.reading.terms import Glossary, Terms, read_glossary, read_protected


def put(terms, line):
    return [(line[match.start : match.end], match.put) for match in terms.matches(line)]


def test_a_term_is_met_as_a_word_and_not_inside_one():
    terms = Terms.of({"dog": "chien"}, None)
    assert terms is not None
    assert put(terms, "the dog, dogs, dog's, hot-dogs, doghouse: dog.") == [("dog", "chien")] * 2


def test_the_longest_term_wins_and_terms_do_not_overlap():
    terms = Terms.of({"red dog": "rouquin", "dog": "chien", "big red": "x"}, ["dog sleeps"])
    assert terms is not None
    assert put(terms, "a red dog sleeps, a dog sleeps") == [
        ("red dog", "rouquin"),
        ("dog sleeps", "dog sleeps"),
    ]


def test_a_term_in_lower_case_is_met_in_any_and_gives_its_case():
    terms = Terms.of({"dog": "chien", "ACME": "Acmé"}, ["Rex"])
    assert terms is not None
    assert put(terms, "Dog DOG ACME acme Rex rex") == [
        ("Dog", "Chien"),
        ("DOG", "CHIEN"),
        ("ACME", "Acmé"),
        ("Rex", "Rex"),
    ]


def test_what_is_protected_wins_over_a_glossary_with_the_same_term():
    terms = Terms.of({"Rex": "Roi"}, ["Rex"])
    assert terms is not None and put(terms, "Rex") == [("Rex", "Rex")]


def test_terms_of_a_script_without_spaces_stand_beside_any_character():
    terms = Terms.of({"犬": "chien"}, None)
    assert terms is not None and put(terms, "赤い犬が寝る") == [("犬", "chien")]


def test_terms_must_have_text():
    assert Terms.of(None, None) is None and Terms.of({}, []) is None
    with pytest.raises(TextError, match="“dog” or its translation is empty"):
        Terms.of({"dog": " "}, None)
    with pytest.raises(TextError, match="one is empty"):
        Terms.of(None, [" "])


def test_two_translations_of_a_term_are_reported_and_the_first_is_used(tmp_path):
    path, said = tmp_path / "terms.tsv", []
    path.write_text("# terms\ndog\tchien\n\ncat\tchat\ndog\ttoutou\ncat\tchat\n", encoding="utf-8")
    assert read_glossary(path, said.append) == {"dog": "chien", "cat": "chat"}
    assert len(said) == 1 and "“chien” in line 2 and “toutou” in line 5" in said[0]


def test_a_line_without_two_columns_is_refused_with_its_number(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("dog\tchien\ncat chat\n", encoding="utf-8")
    with pytest.raises(TextError, match="line 2 is 'cat chat'"):
        read_glossary(path, print)


def test_protected_strings_are_lines(tmp_path):
    path = tmp_path / "protected.txt"
    path.write_text("Rex \n\nNew York\n", encoding="utf-8")
    assert read_protected(path) == ["Rex", "New York"]


def test_a_target_with_a_case_of_its_own_keeps_it():
    terms = Terms.of({"site": "iPhone", "page": "{{page}}", "water": "l'eau"}, None)
    assert [put for *_, put in terms.matches("SITE PAGE WATER")] == ["iPhone", "{{page}}", "L'EAU"]


def test_a_target_is_one_line_without_control_characters():
    terms = Terms.of({"dog": "a\nb\x1b[31m\u2028c"}, ["x\ty"])
    assert terms.glossary == {"dog": "a b [31m c"}
    assert terms.protected == ("x y",)


@pytest.mark.parametrize(
    ("term", "text", "count"),
    [
        ("नमस्ते", "नमस्ते दुनिया", 1),
        ("ते", "नमस्ते", 0),
        ("नमस", "नमस्ते", 0),
        ("क़लम", "\u0915\u093cलम है", 1),
        ("שלום", "שלום, שָׁלוֹם", 1),
        ("שָׁ", "שָׁלוֹם", 0),
        ("שָׁלוֹם", "שָׁלוֹם!", 1),
        ("می", "می\u200cروم می", 1),
        ("ก", "กำกิ", 1),
        ("มา", "เขามากิน", 1),
        ("e", "e\u0301 e", 1),
    ],
)
def test_marks_belong_to_the_word_or_letter_before_them(term, text, count):
    terms = Terms.of({term: "x"}, None)
    assert terms is not None and len(put(terms, text)) == count


@pytest.mark.parametrize(
    ("languages", "matched"),
    [
        (Languages("tr", "de"), [("ISI", "WÄRME"), ("İle", "Mit")]),
        (Languages("en", "tr"), [("ısı", "wärme")]),
    ],
)
def test_the_letter_i_has_the_case_of_its_language(languages, matched):
    terms = Terms.of({"ısı": "wärme", "ile": "mit"}, None)
    text = "ISI İle" if languages.source == "tr" else "ISI ısı"
    matches = terms.matches(text, languages)
    assert [(text[match.start : match.end], match.put) for match in matches] == matched


def test_a_translation_has_the_capitals_of_its_language():
    terms = Terms.of({"tea": "ılık içki"}, None)
    assert [put for *_, put in terms.matches("TEA Tea", Languages("en", "tr"))] == [
        "ILIK İÇKİ",
        "Ilık içki",
    ]


def test_a_term_with_a_sharp_s_is_met_in_capitals():
    terms = Terms.of({"straße": "rue"}, None)
    assert put(terms, "STRASSE Straße") == [("STRASSE", "RUE"), ("Straße", "Rue")]


def test_of_terms_that_are_read_alike_the_first_is_met():
    terms = Terms.of(
        {"straße": "rue", "strasse": "voie", "cafe\u0301": "a", "caf\u00e9": "b"}, None
    )
    assert terms is not None
    assert put(terms, "strasse straße STRASSE café") == [
        ("strasse", "voie"),
        ("straße", "rue"),
        ("STRASSE", "VOIE"),
        ("café", "b"),
    ]


def test_a_term_of_a_request_wins_over_one_that_is_shared():
    shared = Glossary.of({"dog": "chien", "DOG": "X", "cat": "chat"})
    terms = Terms.of(ChainMap({"dog": "toutou"}, shared), ["cat"])
    assert terms is not None
    assert put(terms, "dog DOG cat Cat") == [
        ("dog", "toutou"),
        ("DOG", "TOUTOU"),
        ("cat", "cat"),
        ("Cat", "Chat"),
    ]
    assert terms.glossaries[1] is shared
    assert shared.index is shared.index


def test_a_line_costs_the_same_however_many_terms_there_are():
    terms = Terms.of({f"dog {number}": f"chien {number}" for number in range(20_000)}, None)
    assert terms is not None
    assert put(terms, "a dog 19999") == [("dog 19999", "chien 19999")]
    index = terms.glossaries[0].index
    calls = []
    index.find = lambda text, languages: calls.append(text)
    assert put(terms, "a dog 19999 dog") == []
    assert len(calls) == 5  # as many as there are lengths; none fits at the end
