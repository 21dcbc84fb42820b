"""
Short stories of the toy grammar with a question about each story, and the answer.

::

    “my cow did not eat the egg . a sad girl slept in the garden . where did the girl sleep ?”
        →  “in the garden”

A question is about one sentence of its story, and all nouns of a story are different. So each
question has one answer: a phrase of the story, yes or no.
"""

import random
from collections.abc import Iterator
from dataclasses import replace

from heedful.data.text_parts import Pair
from heedful.data.toy_grammar.english import english
from heedful.data.toy_grammar.generator import SentenceGenerator
from heedful.data.toy_grammar.syntax_tree import Clause, NounPhrase, Tree, VerbPhrase

LANGUAGES = ("question", "answer")
_SENTENCES = 2


def sample_questions(seed: int) -> Iterator[Pair]:
    """
    Draw an endless sequence of different questions.

    >>> question, answer = next(sample_questions(seed=1))
    >>> question.rpartition(" . ")[2], answer
    ('did the girl see the cows ?', 'no')
    """
    draw = random.Random(seed)
    author = SentenceGenerator(draw)
    seen = set()
    while True:
        story = _story(author)
        question, answer = _question(draw.choice(story), draw)
        text = f"{' '.join(f'{_words(clause)} .' for clause in story)} {question} ?"
        if text not in seen:
            seen.add(text)
            yield text, answer


def _story(author: SentenceGenerator) -> list[Clause]:
    """Draw sentences in the past tense in which no noun occurs twice."""
    story: list[Clause] = []
    nouns: set[str] = set()
    while len(story) < _SENTENCES:
        clause = _simple(author.action())
        if clause is None:
            continue
        mentioned = [phrase.noun.singular for phrase in _noun_phrases(clause)]
        if nouns.isdisjoint(mentioned) and len({*mentioned}) == len(mentioned):
            story.append(clause)
            nouns.update(mentioned)
    return story


def _simple(clause: Clause) -> Clause | None:
    """Put a sentence into the past tense; None if it has a modifier or fewer than two nouns."""
    assert isinstance(clause.phrase, VerbPhrase)
    phrases = _noun_phrases(clause)
    if len(phrases) < 2 or any(phrase.modifier for phrase in phrases):
        return None
    return Clause(clause.subject, replace(clause.phrase, past=True))


def _noun_phrases(clause: Clause) -> list[NounPhrase]:
    """List the noun phrases of subject, object and place."""
    assert isinstance(clause.phrase, VerbPhrase)
    place = clause.phrase.place and clause.phrase.place.landmark
    parts = (clause.subject, clause.phrase.object, place)
    return [part for part in parts if isinstance(part, NounPhrase)]


def _question(clause: Clause, draw: random.Random) -> Pair:
    """Ask about a part of a sentence, or ask a yes-no question."""
    phrase = clause.phrase
    assert isinstance(phrase, VerbPhrase)
    doer, thing = _noun_phrases(clause)
    subject, patient = _bare(doer), _bare(thing)
    verb = phrase.verb
    preposition = f"{phrase.place.preposition} " if phrase.place else ""
    kinds = ["whether"] if phrase.negated else ["subject", "rest", "whether"]
    kind = draw.choice(kinds)
    if kind == "subject":
        return f"who {verb.past} {preposition}{patient}", _words(doer)
    if kind == "whether":
        answer = "no" if phrase.negated else "yes"
        return f"did {subject} {verb.base} {preposition}{patient}", answer
    if phrase.place:
        return f"where did {subject} {verb.base}", f"{preposition}{_words(phrase.place.landmark)}"
    word = "who" if thing.is_human else "what"
    return f"{word} did {subject} {verb.base}", _words(thing)


def _bare(phrase: NounPhrase) -> str:
    """Mention a noun again, without its adjectives."""
    return _words(NounPhrase("the", (), phrase.noun, phrase.plural))


def _words(tree: Tree) -> str:
    """Write a tree in English."""
    return " ".join(token.text for token in english(tree))
