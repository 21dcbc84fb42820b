from hypothesis import given
from hypothesis import strategies as st

from heedful.text.reading.draft import Edit, draft, joined_edits


def test_words_are_found_in_their_text():
    found = draft("le  chien dort", ["le", "chien", "dort"], [(0, 0)])
    assert found.words == ["le", "chien", "dort"] and found.links == ((0, 0),)


def test_words_of_another_text_have_no_links():
    found = draft("le chien dort", ["le", "chat", "dort"], [(0, 0)])
    assert found.words == ["le", "chien", "dort"] and found.links == ()


def test_words_move_with_edits():
    before = draft("le gros chien dort", ["le", "gros", "chien", "dort"], [(0, 0), (1, 2)])
    after = before.edited([Edit(2, 3, " 👍 "), Edit(8, 13, "toutou"), Edit(18, 18, ".")])
    assert after.text == "le 👍 gros toutou dort."
    assert after.words == ["le", "gros", "toutou", "dort"]


def test_a_word_that_was_cut_loses_its_links():
    before = draft("non non dort", ["non", "non", "dort"], [(0, 0), (0, 1), (1, 2)])
    after = before.edited([Edit(3, 7, "")]).without_empty()
    assert (after.text, after.words, after.links) == ("non dort", ["non", "dort"], ((0, 0), (1, 1)))


def test_insertions_at_one_place_have_one_space_between():
    edits = [Edit(2, 3, " a "), Edit(2, 3, " b "), Edit(9, 9, " c"), Edit(9, 9, " d")]
    assert joined_edits(edits) == [Edit(2, 3, " a b "), Edit(9, 9, " c d")]


@given(st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=6), st.data())
def test_words_that_are_not_edited_stay_the_same(words, data):
    before = draft(" ".join(words), words, [])
    chosen = data.draw(st.sets(st.integers(0, len(words) - 1)))
    after = before.edited([Edit(*before.spans[place], "xyz") for place in sorted(chosen)])
    assert after.words == ["xyz" if n in chosen else word for n, word in enumerate(words)]
