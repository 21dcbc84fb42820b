"""
A small English-French grammar: the corpus that needs no download.

A sentence is drawn as a tree that both languages say, each in its own file of
`heedful.data.embedded`. Where the two differ is what a translator has to learn. Every English
sentence has exactly one French translation: what English hides and French must show (a gender, a
tense) is left out or told by the sentence itself. Since both sides say the same tree, it is known
which word translates which.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from heedful.data.embedded.english import english
from heedful.data.embedded.french import french
from heedful.data.embedded.lexicon import (
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
from heedful.data.embedded.phrases import (
    Being,
    Clause,
    Nominal,
    NounPhrase,
    Place,
    Relative,
    Tree,
    VerbPhrase,
)
from heedful.data.embedded.wording import Token, links

Pair = tuple[str, str]

# Never in the training split: “the big red dog”, which the quickstart asks a new model for.
_SHOWPIECE = NounPhrase(
    "the",
    tuple(adjective for adjective in ADJECTIVES if adjective.english in ("big", "red")),
    next(noun for noun in NOUNS if noun.one == "dog"),
    plural=False,
)
_SHORTEST, _LONGEST = 2, 14
# Pronouns that need no noun before them, as subjects and as objects.
_ACTING = tuple(PRONOUNS[name] for name in ("i", "we", "he", "she"))
_SEEN = (*_ACTING, PRONOUNS["they-?"])


class AlignedPair(NamedTuple):
    """
    Hold a sentence, its translation, and which word translates which.

    Attributes
    ----------
    source : str
        English.
    target : str
        French.
    sure : frozenset of (int, int)
        Links that every annotator would draw: numbers of an English and a French word, counted
        from 0 between spaces.
    possible : frozenset of (int, int)
        The sure ones and those that one may draw: “did” and the auxiliary, “not” and “ne”.

    Notes
    -----
    A word that is written as one with another (“l'arbre”, “du”) has the links of both.
    """

    source: str
    target: str
    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]


class _Author:
    """Draws trees from a source of random numbers."""

    def __init__(self, source: random.Random) -> None:
        self.random = source

    def sentence(self) -> Tree:
        """Draw one of the six shapes of a sentence."""
        shapes = (self.mention, self.act, self.deed, self.state, self.pursuit, self.reason)
        (shape,) = self.random.choices(shapes, weights=(24, 14, 26, 12, 14, 10))
        return shape()

    def mention(self) -> NounPhrase:
        """Draw “the big red dog” or “the girl near the tree”."""
        phrase = self.noun_phrase(NOUNS, adjectives=0.4, bare_plural=True)
        if self.maybe(0.15):
            return replace(phrase, modifier=self.place())
        return self.with_relative(phrase, 0.25)

    def act(self) -> Clause:
        """Draw “the dog sleeps in the garden”."""
        subject = self.subject()
        return Clause(subject, self.intransitive(subject))

    def deed(self) -> Clause:
        """Draw “the dog does not see a cat” or “she sees him”."""
        verb = self.random.choice(TRANSITIVE)
        if self.maybe(0.15):  # a relative clause on the one side or on the other
            subject, thing = self.subject(0.0), self.with_relative(self.object(verb), 1.0)
            return Clause(subject, self.verb_phrase(subject, verb, thing))
        subject = self.subject()
        if suits(verb, HUMANS[0]) and self.maybe(0.25):
            others = _SEEN[2:] if subject.person == 1 else _SEEN
            return Clause(subject, self.verb_phrase(subject, verb, self.random.choice(others)))
        return Clause(subject, self.verb_phrase(subject, verb, self.object(verb)))

    def state(self) -> Clause:
        """Draw “the apple is not red”."""
        subject = self.noun_phrase(NOUNS, adjectives=0.0, indefinite=False)
        adjectives = [a for a in ADJECTIVES if suits(a, subject.noun)]
        being = Being(self.random.choice(adjectives), self.maybe(0.3), self.maybe(0.25))
        return Clause(subject, being)

    def pursuit(self) -> Clause:
        """Draw “the girl finds an apple and eats it”."""
        subject = self.subject(relative=0.0)
        # What has been eaten can be neither seen nor bought.
        verb = self.random.choice([v for v in TRANSITIVE if v.base != "eat"])
        thing = self.object(verb)
        phrase = VerbPhrase(verb, self.maybe(0.35), object=thing)
        second = self.random.choice([v for v in TRANSITIVE if v != verb and suits(v, thing.noun)])
        negated = self.maybe(0.3)
        sequel = VerbPhrase(second, phrase.past, negated, thing.pronoun())
        return Clause(subject, phrase, "but" if negated else "and", sequel=sequel)

    def reason(self) -> Clause:
        """Draw “the cows stay near the house because they are tired”."""
        subject = self.noun_phrase(LIVING)
        phrase = self.intransitive(subject)
        being = Being(self.random.choice(MOODS), phrase.past, self.maybe(0.2))
        return Clause(subject, phrase, "because", subject.pronoun(), being)

    def subject(self, relative: float = 0.2) -> Nominal:
        """Draw who acts: a pronoun, or a noun with a relative clause now and then."""
        if self.maybe(0.3):
            return self.random.choice(_ACTING)
        return self.with_relative(self.noun_phrase(LIVING), relative)

    def object(self, verb: Verb) -> NounPhrase:
        """Draw what a verb acts on."""
        nouns = [noun for noun in NOUNS if suits(verb, noun)]
        # One loves “les pommes” in French, never “des pommes”.
        definite = verb.base == "love"
        return self.noun_phrase(nouns, indefinite=not definite, bare_plural=not definite)

    def intransitive(self, subject: Nominal) -> VerbPhrase:
        """Draw an act without object, often with a place."""
        place = self.place() if self.maybe(0.4) else None
        return self.verb_phrase(subject, self.random.choice(INTRANSITIVE), place=place)

    def place(self) -> Place:
        """Draw where something is."""
        preposition = self.random.choice(tuple(PREPOSITIONS))
        return Place(preposition, self.noun_phrase(LANDMARKS, adjectives=0.1))

    def verb_phrase(
        self,
        subject: Nominal,
        verb: Verb,
        thing: Nominal | None = None,
        *,
        fronted: NounPhrase | None = None,
        place: Place | None = None,
    ) -> VerbPhrase:
        """Draw tense and negation; no participle may need a gender that English hides."""
        leading = thing if isinstance(thing, Pronoun) else fronted
        model = subject if verb.auxiliary == "être" else leading
        past = self.maybe(0.35) and not (model and model.gender == "?")
        return VerbPhrase(verb, past, self.maybe(0.25), thing, place)

    def with_relative(self, phrase: NounPhrase, chance: float) -> NounPhrase:
        """Add “who sings”, “that sees a cat” or “that I saw” by chance."""
        if not self.maybe(chance):
            return phrase
        if phrase.noun in LIVING and self.maybe(0.25):
            return replace(phrase, modifier=Relative(self.intransitive(phrase)))
        if phrase.noun in LIVING and self.maybe(0.33):
            verb = self.random.choice(TRANSITIVE)
            done = self.verb_phrase(phrase, verb, self.object(verb))
            return replace(phrase, modifier=Relative(done))
        subject = self.subject(relative=0.0)
        verb = self.random.choice([verb for verb in TRANSITIVE if suits(verb, phrase.noun)])
        suffered = self.verb_phrase(subject, verb, fronted=phrase)
        return replace(phrase, modifier=Relative(suffered, subject))

    def noun_phrase(
        self,
        nouns: Sequence[Noun],
        *,
        adjectives: float = 0.15,
        indefinite: bool = True,
        bare_plural: bool = False,
    ) -> NounPhrase:
        """Draw a noun with its determiner, and each group of adjectives by chance."""
        noun, plural = self.random.choice(nouns), self.maybe(0.4)
        (determiner,) = self.random.choices(tuple(DETERMINERS), weights=(5, 2, 2, 2))
        if determiner == "a" and not (bare_plural if plural else indefinite):
            determiner = "the"
        chosen = []
        for group in GROUPS:
            fitting = [a for a in ADJECTIVES if a.group == group and suits(a, noun)]
            if fitting and self.maybe(adjectives):
                chosen.append(self.random.choice(fitting))
        return NounPhrase(determiner, tuple(chosen), noun, plural)

    def maybe(self, chance: float) -> bool:
        """Return True with this probability."""
        return self.random.random() < chance


def sample_pairs(count: int, seed: int) -> list[Pair]:
    """
    Draw sentences with their translations.

    Parameters
    ----------
    count : int
        How many pairs to draw; at least 0.
    seed : int
        Seed of the drawing; the same seed draws the same pairs.

    Returns
    -------
    list of (str, str)
        English and French, lower-case, 2 to 14 English words, no source sentence twice.

    Notes
    -----
    A longer list with the same seed starts with the shorter one. Millions of sentences can be
    drawn, so distinct ones do not run out at any size that is of use.

    Examples
    --------
    >>> sample_pairs(3, seed=1) == sample_pairs(5, seed=1)[:3]
    True
    """
    return [(source, _text(french(tree))) for source, tree in _draw(count, seed).items()]


def split_pairs(train: int, held_out: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """
    Draw a training set and sentences that are not in it.

    Parameters
    ----------
    train : int
        How many pairs to train on; at least 0.
    held_out : int
        How many pairs to hold out; at least 1.
    seed : int
        Seed of the drawing.

    Returns
    -------
    training : list of (str, str)
        Pairs to train on.
    unseen : list of (str, str)
        Pairs whose source sentence is not in `training`; “the big red dog” is the first.

    Raises
    ------
    ValueError
        If a size is below its minimum.

    Notes
    -----
    The held-out sentences are made of the same words as the training sentences in combinations
    that are new, so whoever translates them has learned the grammar and not the list.
    """
    training, unseen = split_aligned(train, held_out, seed)
    return training, [(pair.source, pair.target) for pair in unseen]


def sample_aligned(count: int, seed: int) -> list[AlignedPair]:
    """
    Draw sentences with their translations and word alignments.

    Parameters
    ----------
    count : int
        How many pairs to draw; at least 0.
    seed : int
        Seed of the drawing.

    Returns
    -------
    list of AlignedPair
        The pairs of `sample_pairs`, with the links that both sides' common tree knows.

    Notes
    -----
    A gold set that nobody annotated and no aligner guessed: it measures the error rate of
    alignments that are read off a model's attention.

    Examples
    --------
    >>> sample_aligned(1, seed=1)[0][:2] == sample_pairs(1, seed=1)[0]
    True
    """
    return [_aligned(tree) for tree in _draw(count, seed).values()]


def split_aligned(train: int, held_out: int, seed: int) -> tuple[list[Pair], list[AlignedPair]]:
    """
    Draw a training set, and sentences that are not in it with their word alignments.

    Parameters
    ----------
    train : int
        How many pairs to train on; at least 0.
    held_out : int
        How many pairs to hold out; at least 1.
    seed : int
        Seed of the drawing.

    Returns
    -------
    training : list of (str, str)
        Pairs to train on.
    unseen : list of AlignedPair
        The pairs that `split_pairs` holds out, in order.

    Raises
    ------
    ValueError
        If a size is below its minimum.

    Notes
    -----
    Alignments of sentences that a model has learned by heart would prove little.
    """
    if train < 0 or held_out < 1:
        raise ValueError(f"train must be at least 0 and held_out at least 1: {train}, {held_out}")
    trees = _draw(train + held_out, seed)
    trees.pop(_text(english(_SHOWPIECE)), None)
    training = [(source, _text(french(tree))) for source, tree in islice(trees.items(), train)]
    unseen = islice(trees.values(), train, train + held_out - 1)
    return training, [_aligned(tree) for tree in (_SHOWPIECE, *unseen)]


def sample_trees(count: int, seed: int) -> list[Tree]:
    """
    Draw the trees that sentences say.

    Parameters
    ----------
    count : int
        How many; at least 0.
    seed : int
        Seed of the drawing.

    Returns
    -------
    list of NounPhrase or Clause
        Those of the sentences of `sample_pairs`.

    Notes
    -----
    For whoever asks what stands where in a sentence.
    """
    return list(_draw(count, seed).values())


def _draw(count: int, seed: int) -> dict[str, Tree]:
    """Draw trees of different English sentences."""
    author = _Author(random.Random(seed))
    trees: dict[str, Tree] = {}
    while len(trees) < count:
        tree = author.sentence()
        words = english(tree)
        if _SHORTEST <= len(words) <= _LONGEST:
            trees[_text(words)] = tree
    return trees


def _text(tokens: Sequence[Token]) -> str:
    """Write tokens as a line."""
    return " ".join(token.text for token in tokens)


def _aligned(tree: Tree) -> AlignedPair:
    """Say a tree in both languages and link their words."""
    source, target = english(tree), french(tree)
    found = dict(links(source, target))
    sure = frozenset(link for link, is_sure in found.items() if is_sure)
    return AlignedPair(_text(source), _text(target), sure, frozenset(found))
