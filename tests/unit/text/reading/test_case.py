import pytest

from heedful.text.reading.case import has_plain_case, read_case, restore_line, restore_word
from heedful.text.reading.letter_case import Languages
from tests.support.vocabularies import LETTERS, small_vocabulary

CAPITALS = LETTERS | set("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


@pytest.mark.parametrize(
    ("line", "case"),
    [
        ("THE BIG RED DOG", "upper"),
        ("The Big Red Dog", "title"),
        ("The big red dog", "sentence"),
        ("the BIG red Dog", ""),
    ],
)
def test_words_of_which_only_the_lower_case_is_known_are_read_so(line, case):
    read = read_case(line.split(), small_vocabulary())
    assert read.words == ["the", "big", "red", "dog"]
    assert read.line == case
    assert read.changed == [word != word.lower() for word in line.split()]


def test_a_model_that_knows_capitals_reads_a_heading_as_a_sentence():
    cased = small_vocabulary({"The", "the", "big", "dog", "Mary", "loves", "NATO"}, CAPITALS)
    assert read_case(["THE", "BIG", "DOG"], cased).words == ["The", "big", "dog"]
    assert read_case(["MARY", "LOVES", "NATO"], cased).words == ["Mary", "loves", "NATO"]
    assert read_case(["The", "Dog", "Loves", "Mary"], cased).words == [
        "The",
        "dog",
        "loves",
        "Mary",
    ]


def test_a_line_in_capitals_is_not_read_in_two_cases():
    cased = small_vocabulary({"THE", "The", "the", "big", "dog"}, CAPITALS)
    assert read_case(["THE", "BIG", "DOG"], cased).words == ["The", "big", "dog"]


@pytest.mark.parametrize("line", ["The big dog", "Mary loves NATO", "the USA", "OK", "iPhone"])
def test_what_a_model_knows_or_may_be_a_name_is_left_alone(line):
    cased = small_vocabulary({"The", "the", "big", "dog", "Mary", "loves", "NATO"}, CAPITALS)
    assert read_case(line.split(), cased).words == line.split()


@pytest.mark.parametrize("line", ["Sagt Sie Ja", "Der Hund ist da", "Heben Sie Ihre Hände"])
def test_nouns_and_pronouns_of_german_keep_their_capitals(line):
    words = {"Der", "Hund", "hund", "ist", "da", "Sagt", "Sie", "sie", "Ja", "ja", "Ihre", "ihre"}
    german = small_vocabulary(words, CAPITALS | {"ä"}, "de")
    assert read_case(line.split(), german).words == line.split()


@pytest.mark.parametrize("line", ["Ⓐ", "12 Ⓜ !"])
def test_a_line_without_a_letter_has_no_case(line):
    words = line.split()
    read = read_case(words, small_vocabulary(letters=LETTERS | set("ⒶⓐⓂⓜ12!")))
    assert read == (words, [False] * len(words), "")


def test_the_case_of_a_line_or_word_is_given_back():
    words = ["l'eau", "est", "froide"]
    assert restore_line(words, "upper") == ["L'EAU", "EST", "FROIDE"]
    assert restore_line(words, "title") == ["L'eau", "Est", "Froide"]
    assert restore_line(["«", *words], "sentence") == ["«", "L'eau", "est", "froide"]
    assert restore_word("BIG", "gros") == "GROS"
    assert restore_word("McGros", "mcgros") == "McGros"


def test_a_mixed_case_is_no_plain_one():
    assert all(map(has_plain_case, ["dog", "Dog", "DOG", "Big-Red", "A"]))
    assert not any(map(has_plain_case, ["iPhone", "McDonald"]))


def test_a_heading_of_german_is_read_with_the_sharp_s_that_is_known():
    words = {"die", "straße", "ist", "nass"}
    german = small_vocabulary(words, LETTERS | {"ß"}, "de")
    assert read_case(["DIE", "STRASSE", "IST", "NASS"], german).words == [
        "die",
        "straße",
        "ist",
        "nass",
    ]
    assert read_case(["DIE", "STRAßE"], german).line == "upper"
    assert restore_line(["straße"], "upper", "de") == ["STRASSE"]
    assert restore_line(["straße"], "title", "de") == ["Straße"]


def test_a_heading_of_turkish_is_read_and_written_with_its_own_letters():
    turkish = small_vocabulary({"ılık", "iç", "su"}, LETTERS | set("ıç"), "tr")
    assert read_case(["ILIK", "SU", "İÇ"], turkish).words == ["ılık", "su", "iç"]
    assert restore_line(["ılık", "içki"], "upper", "tr") == ["ILIK", "İÇKİ"]
    assert restore_line(["ılık", "içki"], "title", "tr") == ["Ilık", "İçki"]
    assert restore_line(["içki"], "upper", "fr") == ["IÇKI"]
    assert restore_word("ISI", "ısı", Languages("tr", "en")) == "ISI"
    assert restore_word("Rain", "izmir", Languages("en", "tr")) == "İzmir"
