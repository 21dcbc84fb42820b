"""Answers beside a reader of words, which knows nothing of trees."""

import re
from collections import Counter
from itertools import islice

import pytest

from heedful.data.toy_grammar.questions import sample_questions

PAST = dict(
    pair.split()
    for pair in """
    saw see;found find;loved love;heard hear;followed follow;ate eat;bought buy;carried carry
    slept sleep;sang sing;danced dance;ran run;laughed laugh;arrived arrive;fell fall;stayed stay
    """.strip()
    .replace("\n", ";")
    .split(";")
)
PLACE = re.compile("(in front of|in|behind|near) (.*)")


def noun(phrase):
    """Take the last word as it stands after “the”."""
    return f"the {phrase.split()[-1]}"


def read_sentence(text):
    """Read who, whether, the verb's base, the preposition and the other noun phrase."""
    subject, negated, base, rest = re.fullmatch(
        rf"(.*?) (?:(did not) )?({'|'.join([*PAST, *PAST.values()])}) (.*)", text
    ).groups()
    place = PLACE.fullmatch(rest)
    preposition, other = place.groups() if place else ("", rest)
    return subject, not negated, base if negated else PAST[base], preposition, other


def answers(sentence, question):
    """List the answer of a sentence to a question, or nothing."""
    subject, is_so, base, preposition, other = read_sentence(sentence)
    rest = f"{preposition} {noun(other)}".strip()
    past = next(form for form, of in PAST.items() if of == base)
    if question == f"did {noun(subject)} {base} {rest}":
        return ["yes" if is_so else "no"]
    if not is_so:
        return []
    if question == f"who {past} {rest}":
        return [subject]
    if question == f"where did {noun(subject)} {base}" and preposition:
        return [f"{preposition} {other}"]
    if question in (f"{word} did {noun(subject)} {base}" for word in ("who", "what")):
        return [other] * (not preposition)
    return []


@pytest.fixture(scope="module")
def drawn():
    return [*islice(sample_questions(seed=3), 2000)]


def test_a_reader_finds_the_one_answer(drawn):
    for text, answer in drawn:
        *story, question = text.removesuffix(" ?").split(" . ")
        assert len(story) == 2
        found = [one for sentence in story for one in answers(sentence, question)]
        assert found == [answer], text


def test_no_noun_comes_twice_in_a_story(drawn):
    plurals = {"men": "man", "women": "woman", "mice": "mouse"}
    for text, _ in drawn:
        nouns = []
        for sentence in text.split(" . ")[:-1]:
            subject, *_, other = read_sentence(sentence)
            nouns += [phrase.split()[-1] for phrase in (subject, other)]
        nouns = [plurals.get(one, one.removesuffix("s")) for one in nouns]
        assert len({*nouns}) == len(nouns), text


def test_questions_differ_and_every_kind_occurs(drawn):
    assert len({text for text, _ in drawn}) == len(drawn)
    assert drawn[:20] == [*islice(sample_questions(seed=3), 20)]
    words = Counter(text.split(" . ")[-1].split()[0] for text, _ in drawn)
    assert {*words} == {"who", "what", "where", "did"}
    assert min(words.values()) > 50
    kinds = Counter(answer for _, answer in drawn)
    # no word answers many more questions than its opposite
    assert 0.8 < kinds["yes"] / kinds["no"] < 1.25


def test_a_person_is_asked_for_as_who(drawn):
    people = {"man", "men", "woman", "women", "king", "kings", "queen", "queens"}
    people |= {"boy", "boys", "girl", "girls"}
    for text, answer in drawn:
        asked = re.search(r"(who|what) did the", text)
        if asked:
            assert (asked[1] == "who") == (answer.split()[-1] in people), text
