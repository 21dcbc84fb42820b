import pytest

from heedful.text.reading.loops import cut_letter_loops, cut_word_loops, loops_of_words


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("a b c d", []),
        ("no no", []),
        ("no no no", [(0, 1, 3)]),
        ("x a b a b a b y", [(1, 2, 6)]),
        ("a b a b", []),
    ],
)
def test_words_again_and_again_are_a_loop(text, loops):
    assert list(loops_of_words(text.split())) == loops


def test_all_rounds_but_the_first_are_cut():
    words = ["le", "chien", "et", "le", "chat", "et", "le", "chat", "et", "le", "chat", "dort"]
    cut = cut_word_loops(words, ["the", "dog", "and", "the", "cat", "sleeps"])
    assert [words[start:end] for start, end in cut] == [["et", "le", "chat"] * 2]


def test_a_source_that_repeats_itself_may_be_translated_so():
    assert cut_word_loops(["Hund"] * 12, ["dog"] * 12) == []
    assert cut_word_loops(["Hund"] * 14, ["dog"] * 12) == [(12, 14)]
    assert cut_word_loops(["non"] * 3, ["no"] * 3) == []
    assert cut_word_loops(["non"] * 3, ["no"] * 2) == [(2, 3)]


def test_letters_again_and_again_are_cut():
    assert cut_letter_loops("BOGAGAGAGAGAGOGOGOGO", "BIG")[0] == "BOGAGO"
    assert cut_letter_loops("Neiiiiiiin!", "no!") == ("Nein!", 1)
    assert cut_letter_loops("1000000", "a million") == ("1000000", 0)
    assert cut_letter_loops("banana", "banana") == ("banana", 0)
    assert cut_letter_loops("hahahaha", "hahahaha") == ("hahahaha", 0)


def test_groups_of_digits_are_no_loop():
    words = ["il", "coûte", "1", "000", "000", "000", "euros"]
    assert cut_word_loops(words, ["it", "costs", "1,000,000,000", "euros"]) == []


def test_marks_do_not_hide_the_repetition_of_a_source():
    assert (
        cut_word_loops(["très", "très", "très", "bien"], ["very,", "very,", "very", "good"]) == []
    )
