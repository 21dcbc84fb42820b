import pytest

from heedful.text.reading.draft import Edit, draft
from heedful.text.reading.line import LineReader
from heedful.text.reading.prefix import NO_PREFIX, Prefix, move_after_prefix, with_prefix
from tests.support.vocabularies import small_vocabulary


@pytest.mark.parametrize(
    ("line", "translation", "prefix", "restored"),
    [
        ("THE BIG DOG", "le gros chien", Prefix("le gros", "le gros"), "le gros CHIEN"),
        ("The dog sleeps", "le chien dort", Prefix("le", "le"), "le chien dort"),
        ("The Big Dog", "le gros chien", NO_PREFIX, "Le Gros Chien"),
        ("👍 the dog", "le chien", Prefix("le", "le"), "le 👍 chien"),
        ("👍 the dog", "⁇ le chien", Prefix("⁇ le", "👍 Le"), "👍 Le chien"),
        ("the dog 👍", "le chien", Prefix("le", "le"), "le chien 👍"),
        ("the dog", "le le le le chien", Prefix("le le le", "le le le"), "le le le chien"),
        ("THE DOG", "chienne", Prefix("chien", "chien"), "chienne"),
        ("the dog", "un chien", Prefix("le", "le"), "un chien"),
    ],
)
def test_a_prefix_stays_as_the_user_wrote_it(line, translation, prefix, restored):
    read = LineReader(small_vocabulary()).read(line)
    words = translation.split(" ")
    assert read.restore(translation, words, (), prefix).text == restored


def test_the_end_of_a_prefix_is_that_of_a_word():
    assert with_prefix(draft("chienne dort", (), ()), Prefix("chien", "chien"))[1] == 7
    assert with_prefix(draft("a b", (), ()), NO_PREFIX)[1] == 0


def test_what_would_be_put_into_a_prefix_follows_it():
    assert move_after_prefix(Edit(0, 0, "x "), "le chien", 2) == Edit(2, 2, " x")
    assert move_after_prefix(Edit(0, 0, "le "), "le chien", 2).text == ""
    assert move_after_prefix(Edit(5, 5, " x"), "le chien", 2) == Edit(5, 5, " x")
