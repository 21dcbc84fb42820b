"""What is written for unknown words."""

import pytest

from heedful.alignment.links import read_gold
from heedful.alignment.unknown_words import read_dictionary, replace_unknown, split_words
from heedful.errors import TextError

SOURCE = ["the", "Zebra", "sees", "John", "Smith"]
TARGET = ["le", "⁇", "voit", "⁇", "⁇"]
LINKS = read_gold("0-0 1-1 2-2 3-3 4-3").sure


def test_an_unknown_word_becomes_the_source_words_it_is_linked_to():
    found = replace_unknown(TARGET, [1, 3], LINKS, SOURCE)
    assert found == ["le", "Zebra", "voit", "John Smith", "⁇"]
    words, links = split_words(found, LINKS)
    assert words == ["le", "Zebra", "voit", "John", "Smith", "⁇"]
    assert links == read_gold("0-0 1-1 2-2 3-3 3-4 4-3 4-4").sure


def test_the_dictionary_comes_first_then_lower_case_then_the_word_itself():
    dictionary = {"zebra": "zèbre", "John": "Jean", "the": "la"}
    found = replace_unknown(TARGET, [1, 3], LINKS, SOURCE, dictionary)
    assert found == ["le", "zèbre", "voit", "Jean Smith", "⁇"]
    found = replace_unknown(TARGET, [1], LINKS, SOURCE, {"zebra": "zèbre", "Zebra": "Zèbre"})
    assert found[1] == "Zèbre"


def test_a_word_without_a_link_stays_as_it_is():
    assert replace_unknown(TARGET, [4], LINKS, SOURCE) == TARGET
    assert split_words(TARGET, LINKS) == (TARGET, LINKS)
    assert split_words([], frozenset()) == ([], frozenset())


def test_a_dictionary_is_read_and_the_first_translation_holds(tmp_path):
    file = tmp_path / "words.tsv"
    file.write_text("zebra\tzèbre\n\nzebra\tâne rayé\nbig apple\tgrosse pomme\n", encoding="utf-8")
    assert read_dictionary(file) == {"zebra": "zèbre", "big apple": "grosse pomme"}


@pytest.mark.parametrize("line", ["zebra", "zebra zèbre", "\tzèbre", "zebra\t ", "a\tb\tc"])
def test_a_line_that_is_no_entry_is_refused_with_its_place(tmp_path, line):
    file = tmp_path / "words.tsv"
    file.write_text(f"dog\tchien\n{line}\n", encoding="utf-8")
    with pytest.raises(TextError, match=r"words\.tsv must hold a word, a tab .* line 2 is"):
        read_dictionary(file)
