"""
Random generation of the syntax trees of sentences.

Sentences make sense: apples are eaten, but they do not sing. Each sentence has one translation,
because genders and tenses that English does not show are avoided.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

from heedful.data.toy_grammar.lexicon import (
    ADJECTIVES,
    DETERMINERS,
    GROUPS,
    HUMANS,
    INTRANSITIVE,
    LANDMARKS,
    LIVING,
    MOODS,
    NOUNS,
    PREPOSITIONS,
    PRONOUNS,
    TRANSITIVE,
    Noun,
    Pronoun,
    Verb,
    suits,
)
from heedful.data.toy_grammar.syntax_tree import (
    Clause,
    CopulaPhrase,
    Nominal,
    NounPhrase,
    Place,
    Relative,
    Tree,
    VerbPhrase,
)

# Pronouns that need no noun before them, as subjects and as objects.
_ACTING = tuple(PRONOUNS[name] for name in ("i", "we", "he", "she"))
_SEEN = (*_ACTING, PRONOUNS["they-?"])


class SentenceGenerator:
    """A random generator of syntax trees."""

    def __init__(self, source: random.Random) -> None:
        self._random = source

    def sentence(self) -> Tree:
        """Draw a sentence; its type and all choices within it have fixed probabilities."""
        shapes = (self._mention, self._act, self._deed, self._state, self._pursuit, self._reason)
        (shape,) = self._random.choices(shapes, weights=(24, 14, 26, 12, 14, 10))
        return shape()

    def action(self) -> Clause:
        """Draw a sentence about an action, with or without an object."""
        return self._deed() if self._maybe(0.6) else self._act()

    def _mention(self) -> NounPhrase:
        """Draw “the big red dog” or “the girl near the tree”."""
        phrase = self._noun_phrase(NOUNS, adjectives=0.4, bare_plural=True)
        if self._maybe(0.15):
            return replace(phrase, modifier=self._place())
        return self._with_relative(phrase, 0.25)

    def _act(self) -> Clause:
        """Draw “the dog sleeps in the garden”."""
        subject = self._subject()
        return Clause(subject, self._intransitive(subject))

    def _deed(self) -> Clause:
        """Draw “the dog does not see a cat” or “she sees him”."""
        verb = self._random.choice(TRANSITIVE)
        if self._maybe(0.15):  # a relative clause after the object, and then none after the subject
            subject, thing = self._subject(0.0), self._with_relative(self._object(verb), 1.0)
            return Clause(subject, self._verb_phrase(subject, verb, thing))
        subject = self._subject()
        if suits(verb, HUMANS[0]) and self._maybe(0.25):
            others = _SEEN[2:] if subject.person == 1 else _SEEN
            return Clause(subject, self._verb_phrase(subject, verb, self._random.choice(others)))
        return Clause(subject, self._verb_phrase(subject, verb, self._object(verb)))

    def _state(self) -> Clause:
        """Draw “the apple is not red”."""
        subject = self._noun_phrase(NOUNS, adjectives=0.0, indefinite=False)
        adjectives = [a for a in ADJECTIVES if suits(a, subject.noun)]
        being = CopulaPhrase(self._random.choice(adjectives), self._maybe(0.3), self._maybe(0.25))
        return Clause(subject, being)

    def _pursuit(self) -> Clause:
        """Draw “the girl finds an apple and eats it”."""
        subject = self._subject(relative=0.0)
        # What has been eaten can be neither seen nor bought.
        verb = self._random.choice([v for v in TRANSITIVE if v.base != "eat"])
        thing = self._object(verb)
        phrase = VerbPhrase(verb, self._maybe(0.35), object=thing)
        second = self._random.choice([v for v in TRANSITIVE if v != verb and suits(v, thing.noun)])
        negated = self._maybe(0.3)
        sequel = VerbPhrase(second, phrase.past, negated, thing.pronoun())
        return Clause(subject, phrase, "but" if negated else "and", sequel=sequel)

    def _reason(self) -> Clause:
        """Draw “the cows stay near the house because they are tired”."""
        subject = self._noun_phrase(LIVING)
        phrase = self._intransitive(subject)
        being = CopulaPhrase(self._random.choice(MOODS), phrase.past, self._maybe(0.2))
        return Clause(subject, phrase, "because", subject.pronoun(), being)

    def _subject(self, relative: float = 0.2) -> Nominal:
        """Draw a subject: a pronoun, or a noun that sometimes has a relative clause."""
        if self._maybe(0.3):
            return self._random.choice(_ACTING)
        return self._with_relative(self._noun_phrase(LIVING), relative)

    def _object(self, verb: Verb) -> NounPhrase:
        """Draw an object."""
        nouns = [noun for noun in NOUNS if suits(verb, noun)]
        # One loves “les pommes” in French, never “des pommes”.
        definite = verb.base == "love"
        return self._noun_phrase(nouns, indefinite=not definite, bare_plural=not definite)

    def _intransitive(self, subject: Nominal) -> VerbPhrase:
        """Draw a verb without an object, often with a place."""
        place = self._place() if self._maybe(0.4) else None
        return self._verb_phrase(subject, self._random.choice(INTRANSITIVE), place=place)

    def _place(self) -> Place:
        """Draw a place."""
        preposition = self._random.choice(tuple(PREPOSITIONS))
        return Place(preposition, self._noun_phrase(LANDMARKS, adjectives=0.1))

    def _verb_phrase(
        self,
        subject: Nominal,
        verb: Verb,
        thing: Nominal | None = None,
        *,
        fronted: NounPhrase | None = None,
        place: Place | None = None,
    ) -> VerbPhrase:
        """Draw tense and negation; avoid participles whose gender English does not show."""
        leading = thing if isinstance(thing, Pronoun) else fronted
        model = subject if verb.auxiliary == "être" else leading
        past = self._maybe(0.35) and not (model and model.gender == "?")
        return VerbPhrase(verb, past, self._maybe(0.25), thing, place)

    def _with_relative(self, phrase: NounPhrase, chance: float) -> NounPhrase:
        """Add “who sings”, “that sees a cat” or “that I saw” with some probability."""
        if not self._maybe(chance):
            return phrase
        if phrase.noun in LIVING and self._maybe(0.25):
            return replace(phrase, modifier=Relative(self._intransitive(phrase)))
        if phrase.noun in LIVING and self._maybe(0.33):
            verb = self._random.choice(TRANSITIVE)
            done = self._verb_phrase(phrase, verb, self._object(verb))
            return replace(phrase, modifier=Relative(done))
        subject = self._subject(relative=0.0)
        verb = self._random.choice([verb for verb in TRANSITIVE if suits(verb, phrase.noun)])
        suffered = self._verb_phrase(subject, verb, fronted=phrase)
        return replace(phrase, modifier=Relative(suffered, subject))

    def _noun_phrase(
        self,
        nouns: Sequence[Noun],
        *,
        adjectives: float = 0.15,
        indefinite: bool = True,
        bare_plural: bool = False,
    ) -> NounPhrase:
        """Draw a noun with its determiner, and each group of adjectives with some probability."""
        noun, plural = self._random.choice(nouns), self._maybe(0.4)
        (determiner,) = self._random.choices(tuple(DETERMINERS), weights=(5, 2, 2, 2))
        if determiner == "a" and not (bare_plural if plural else indefinite):
            determiner = "the"
        chosen = []
        for group in GROUPS:
            fitting = [a for a in ADJECTIVES if a.group == group and suits(a, noun)]
            if fitting and self._maybe(adjectives):
                chosen.append(self._random.choice(fitting))
        return NounPhrase(determiner, tuple(chosen), noun, plural)

    def _maybe(self, chance: float) -> bool:
        """Return True with this probability."""
        return self._random.random() < chance
