from dataclasses import replace

from heedful.text.sentences import TextLayout
from heedful.translation.join import join_sentences
from heedful.translation.result import Translation, WordAlignment


def sentence(text, links=()):
    words = tuple(text.split())
    return Translation(text, -1.0, words, -2.0, alignment=WordAlignment(words, words, links))


def test_sentences_are_joined_with_what_stands_between_them():
    layout = TextLayout(("a b", "c"), ("", ". ", "!"))
    joined = join_sentences([sentence("A B", ((0, 0),)), sentence("C", ((0, 0),))], layout.fill)
    assert joined.text == "A B. C!"
    assert (joined.score, joined.log_probability, joined.tokens) == (-2.0, -4.0, ("A", "B", "C"))
    assert joined.alignment is not None and joined.alignment.links == ((0, 0), (2, 2))


def test_a_sentence_with_fewer_alternatives_repeats_its_last():
    first = replace(sentence("A"), alternatives=(sentence("B"), sentence("D")))
    joined = join_sentences([first, sentence("C")], TextLayout(("a", "c"), ("", " ", "")).fill)
    assert [other.text for other in joined.alternatives] == ["B C", "D C"]
