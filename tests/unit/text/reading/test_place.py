from random import Random

from heedful.text.reading.place import best_place, linked_run, marks_after, marks_before

MOVED = [(0, 0), (1, 1), (2, 3), (3, 2), (4, 4)]


def test_a_place_is_between_what_stood_before_and_behind():
    assert best_place(1, 5, MOVED) == (1, True)
    assert best_place(2, 5, MOVED) == (2, True)
    assert best_place(4, 5, MOVED) == (4, True)
    assert best_place(3, 5, MOVED) == (4, True)


def test_words_without_links_stay_with_the_word_behind_them():
    assert best_place(1, 4, [(0, 0), (1, 3)]) == (1, True)


def test_without_links_of_its_neighbors_a_place_is_not_sure():
    assert best_place(2, 5, []) == (5, False)
    assert best_place(3, 5, [(0, 0)]) == (5, False)
    assert not best_place(1, 2, [(0, 1), (1, 0)]).is_sure


def test_a_term_is_translated_by_a_run_of_words():
    assert linked_run([3], 5, MOVED) == ((2, 3), True)
    assert linked_run([2, 3], 5, MOVED) == ((2, 4), True)
    assert linked_run([0, 4], 5, MOVED) == ((0, 1), False)
    assert linked_run([7], 5, MOVED) == (None, False)


def test_marks_around_a_word_are_left_out():
    text = "«chien». ..."
    assert text[marks_before(text, 0, 8) : marks_after(text, 0, 8)] == "chien"
    assert (marks_before(text, 9, 12), marks_after(text, 9, 12)) == (9, 12)


def test_a_place_is_that_of_the_plain_sum():
    random = Random(1)
    for _ in range(200):
        words, gap = random.randint(1, 8), random.randint(0, 8)
        links = [(random.randint(0, 8), random.randint(0, words - 1)) for _ in range(9)]
        weighted = [(i, j, 1 / (gap - i if i < gap else i - gap + 1)) for i, j in links]
        crossing = [
            sum(weight for i, j, weight in weighted if (i < gap) != (j < boundary))
            for boundary in range(words + 1)
        ]
        place = best_place(gap, words, links)
        if any(i in (gap - 1, gap) for i, _ in links):
            is_sure = min(crossing) <= 0.34 * sum(weight for *_, weight in weighted)
            assert place.is_sure == is_sure
