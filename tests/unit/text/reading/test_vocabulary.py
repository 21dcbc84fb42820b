from heedful.text.reading.vocabulary import LACKING
from tests.support.vocabularies import small_vocabulary


def test_a_character_is_lacking_if_no_subword_spells_it():
    vocabulary = small_vocabulary()
    assert not vocabulary.lacks("a")
    assert vocabulary.lacks("犬") and vocabulary.lacks("A")
    assert vocabulary.lacks_any("the A") and not vocabulary.lacks_any("the big dog")
    assert vocabulary.cost("dog") == 1 and vocabulary.cost("xyz") == 3
    assert vocabulary.cost("7") == LACKING


def test_marks_and_letters_are_read_in_the_plain_form_that_is_known():
    vocabulary = small_vocabulary()
    assert vocabulary.known_form("’") == "'"
    assert vocabulary.known_form("ｄ") == "d"
    assert vocabulary.known_form("ﬁ") == "fi"
    assert vocabulary.known_form("…") == "..."
    # Digits and symbols mean something in their form.
    assert vocabulary.known_form("²") == "²"
    assert vocabulary.known_form("犬") == "犬"
