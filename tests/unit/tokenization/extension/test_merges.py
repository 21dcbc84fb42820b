from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.tokenization.extension.merges import learn_pieces, learn_words, words_in


def learn(words, count, unchanged=(), known=frozenset("▁abc")):
    return learn_pieces(Counter(words), Counter(unchanged), known, count, lambda letter: ())


def test_words_begin_with_a_space():
    rows = [["▁a", "b", "▁", "c"], ["x", "▁a", "b"]]
    assert words_in(rows) == {("▁a", "b"): 2, ("▁", "c"): 1, ("x",): 1}


def test_the_most_frequent_pair_is_merged_first_and_knows_its_parts():
    new = learn({("a", "b", "c"): 3, ("a", "b"): 2, ("b", "c"): 4}, 4)
    assert [(n.piece, n.parts, n.halves) for n in new] == [
        ("bc", ("b", "c"), ("b", "c")),
        ("abc", ("a", "b", "c"), ("a", "bc")),
        ("ab", ("a", "b"), ("a", "b")),
    ]


def test_unknown_characters_take_at_most_half_the_places():
    new = learn({("д", "ж"): 5, ("д", "x"): 2, ("7", "q"): 2}, 4)
    assert [n.piece for n in new] == ["д", "ж", "дж"]
    assert new[0].parts == ()


def test_numbers_and_punctuation_are_not_merged():
    known = frozenset("▁a1,")
    assert learn({("1", "1"): 9, ("a", ","): 9, ("▁", "1"): 9}, 9, known=known) == []


def test_neighbors_of_text_that_stays_are_never_merged():
    words = {("a", "b", "c"): 9}
    assert [n.piece for n in learn(words, 9, {("a", "b"): 1})] == ["bc", "abc"]
    assert learn({("д", "д"): 9}, 9, {("д",): 1}) == []


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.lists(st.sampled_from("abc"), min_size=1, max_size=7).map(tuple),
        st.integers(1, 5),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 6),
)
def test_it_is_greedy_byte_pair_learning(words, count):
    rows = [(list(word), times) for word, times in words.items()]
    expected, taken = [], set("abc")
    while len(expected) < count:
        counts = Counter()
        for row, times in rows:
            for pair in pairwise(row):
                counts[pair] += times
        open_pairs = [p for p, n in counts.items() if n >= 2 and "".join(p) not in taken]
        if not open_pairs:
            break
        best = min(open_pairs, key=lambda pair: (-counts[pair], pair))
        expected.append("".join(best))
        taken.add("".join(best))
        for row, _ in rows:
            place = 0
            while place < len(row) - 1:
                if (row[place], row[place + 1]) == best:
                    row[place : place + 2] = ["".join(best)]
                place += 1
    assert [new.piece for new in learn(words, count)] == expected


def test_a_vocabulary_of_words_gets_words():
    words = Counter({("▁neu",): 3, ("▁alt",): 3, ("▁selten",): 1, ("▁da",): 9})
    new = learn_words(words, Counter({("▁da",): 1}), {"▁alt"}, 5)
    assert [n.piece for n in new] == ["▁neu"]


def test_a_line_of_one_letter_makes_no_endless_subword():
    new = learn({("a",) * 5000: 1}, 30)
    assert [len(n.piece) for n in new[:6]] == [2, 4, 8, 16, 32, 64]
    assert max(len(n.piece) for n in new) == 64
    assert learn_words(Counter({("a",) * 5000: 9, ("b", "c"): 2}), Counter(), frozenset(), 9) == [
        ("bc", (), None)
    ]
