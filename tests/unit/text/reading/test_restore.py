from heedful.text.reading.case import CasedWords
from heedful.text.reading.draft import draft
from heedful.text.reading.restore import cut_loops, restore_case


def test_loops_of_words_and_letters_are_cut_and_links_follow():
    words = ["non", "non", "non", "non", "gagagagaga", "dort"]
    result, cuts = cut_loops(draft(" ".join(words), words, [(0, 3), (1, 5)]), "no sleeps")
    assert (result.text, cuts, result.links) == ("non ga dort", 2, ((1, 2),))


def test_the_case_of_words_needs_links_and_is_lost_without():
    cased = CasedWords(["the", "big", "dog"], [False, True, False])
    words = ["le", "gros", "chien"]
    linked = draft("le gros chien", words, [(0, 0), (1, 1), (2, 2)])
    assert restore_case(linked, ["the", "BIG", "dog"], cased)[0].text == "le GROS chien"
    alone, case = restore_case(draft("le gros chien", words, []), ["the", "BIG", "dog"], cased)
    assert (alone.text, case) == ("le gros chien", "lost")
