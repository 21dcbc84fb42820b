"""
A small English-French grammar: the corpus that needs no download.

A sentence is drawn as a tree (who does what to whom, and where) and every node of the tree says
itself in both languages, side by side. Where the two differ is what a translator has to learn:
French nouns have a gender that articles, adjectives and some participles follow, most adjectives
stand behind the noun, object pronouns stand before the verb, a negation embraces it, and many
words change in front of a vowel.

Words are written ``form|form before a vowel`` where the next word decides: ``le|l'``,
``beau|bel``, ``a|an``. Every English sentence has exactly one French translation: what English
hides and French must show (a gender, a tense) is left out or told by the sentence itself.
"""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from heedful.data.lexicon import (
    ADJECTIVES,
    AUXILIARIES,
    BE,
    DETERMINERS,
    DO,
    ETAIT,
    GROUPS,
    HUMANS,
    INTRANSITIVE,
    LANDMARKS,
    LINKS,
    LIVING,
    MOODS,
    NOUNS,
    PREPOSITIONS,
    PRONOUNS,
    TRANSITIVE,
    WAS,
    Adjective,
    Noun,
    Pronoun,
    Verb,
    Words,
    suits,
)

Pair = tuple[str, str]

# Never in the training split: the sentence that the quickstart asks a new model for.
_SHOWPIECE: Pair = ("the big red dog", "le gros chien rouge")
_SHORTEST, _LONGEST = 2, 14
# Pronouns that need no noun before them, as subjects and as objects.
_ACTING = tuple(PRONOUNS[name] for name in ("i", "we", "he", "she"))
_SEEN = (*_ACTING, PRONOUNS["they-?"])


# ------------------------------------------------------------------ the nodes of a tree


@dataclass(frozen=True)
class _NounPhrase:
    """A determiner, adjectives in English order, a noun, and what is said about it behind it."""

    determiner: str
    adjectives: tuple[Adjective, ...]
    noun: Noun
    plural: bool
    modifier: "_Relative | _Place | None" = None
    person: int = 3

    @property
    def gender(self) -> str:
        """The gender of the noun."""
        return self.noun.gender

    def english(self) -> Words:
        """Return determiner, adjectives, noun."""
        words = [
            DETERMINERS[self.determiner][self.plural],
            *(adjective.english for adjective in self.adjectives),
            self.noun.many if self.plural else self.noun.one,
        ]
        return words + (self.modifier.english(self) if self.modifier else [])

    def french(self, negated: bool = False) -> Words:
        """Return the same, the adjectives after the noun from the inside out."""
        before = [_agree(a, self) for a in self.adjectives if a.side == "before"]
        after = [_agree(a, self) for a in reversed(self.adjectives) if a.side == "after"]
        article = DETERMINERS[self.determiner][4 if self.plural else 2 + (self.gender == "f")]
        if self.determiner == "a" and (negated or (self.plural and before)):
            article = "de|d'"  # pas un chien -> pas de chien; des gros chiens -> de gros chiens
        noun = self.noun.des if self.plural else self.noun.un
        words = [article, *before, noun, *after]
        return words + (self.modifier.french(self) if self.modifier else [])

    def pronoun(self) -> Pronoun:
        """Return the third person that stands for it."""
        if self.plural:
            return PRONOUNS[f"they-{self.gender}"]
        if self.noun in HUMANS:
            return PRONOUNS["she" if self.gender == "f" else "he"]
        return PRONOUNS[f"it-{self.gender}"]


_Nominal = _NounPhrase | Pronoun


def _agree(adjective: Adjective, who: _Nominal) -> str:
    """Return the French form that agrees with a noun or a pronoun."""
    if who.gender == "f":
        return adjective.des_f if who.plural else adjective.une
    return adjective.des_m if who.plural else adjective.un


def _conjugate(forms: Sequence[str], subject: _Nominal) -> str:
    """Return the one of four forms that agrees with the subject."""
    return forms[2 * subject.plural + (subject.person == 3)]


@dataclass(frozen=True)
class _VerbPhrase:
    """What is said of a subject: a verb with its object or with a place."""

    verb: Verb
    past: bool = False
    negated: bool = False
    object: _Nominal | None = None
    place: "_Place | None" = None

    def english(self, subject: _Nominal) -> Words:
        """Return verb, object, place; a negation needs “do”."""
        verb = self.verb
        if self.negated:
            words = ["did" if self.past else _conjugate(DO, subject), "not", verb.base]
        elif self.past:
            words = [verb.past]
        else:
            words = [_conjugate((verb.base, verb.third, verb.base, verb.base), subject)]
        if isinstance(self.object, Pronoun):
            words += [self.object.object]
        elif self.object:
            words += self.object.english()
        return words + (self.place.english() if self.place else [])

    def french(self, subject: _Nominal, fronted: _Nominal | None = None) -> Words:
        """Return ne, object pronoun, verb, pas, participle, object, place."""
        pronoun = self.object if isinstance(self.object, Pronoun) else None
        finite, participle = self._tense(subject, fronted or pronoun)
        words = [pronoun.objet, finite] if pronoun else [finite]
        if self.negated:
            words = ["ne|n'", *words, "pas"]
        words += participle
        if isinstance(self.object, _NounPhrase):
            words += self.object.french(self.negated)
        return words + (self.place.french() if self.place else [])

    def _tense(self, subject: _Nominal, leading: _Nominal | None) -> tuple[str, Words]:
        """Return the finite verb and the participle; `leading` is an object before the verb."""
        verb = self.verb
        if not self.past:
            return _conjugate((verb.je, verb.il, verb.nous, verb.ils), subject), []
        participle = verb.participle
        model = subject if verb.auxiliary == "être" else leading
        if model:
            participle += "e" * (model.gender == "f") + "s" * model.plural
        return _conjugate(AUXILIARIES[verb.auxiliary], subject), [participle]


@dataclass(frozen=True)
class _Being:
    """What a subject is: a form of to be and an adjective."""

    adjective: Adjective
    past: bool
    negated: bool

    def english(self, subject: _Nominal) -> Words:
        """Return is, not, adjective."""
        verb = _conjugate(WAS if self.past else BE, subject)
        return [verb, *(["not"] if self.negated else []), self.adjective.english]

    def french(self, subject: _Nominal) -> Words:
        """Return ne, est, pas, adjective."""
        verb = _conjugate(ETAIT if self.past else AUXILIARIES["être"], subject)
        words = ["ne|n'", verb, "pas"] if self.negated else [verb]
        return [*words, _agree(self.adjective, subject)]


@dataclass(frozen=True)
class _Relative:
    """A relative clause: its noun acts in it, or is acted on by a subject of its own."""

    phrase: _VerbPhrase
    subject: _Nominal | None = None

    def english(self, noun: _NounPhrase) -> Words:
        """Return who or that, and the rest of the clause."""
        if self.subject is None:
            who = "who" if noun.noun in HUMANS else "that"
            return [who, *self.phrase.english(noun)]
        return ["that", *self.subject.english(), *self.phrase.english(self.subject)]

    def french(self, noun: _NounPhrase) -> Words:
        """Return qui or que, and the rest; an object in front governs the participle."""
        if self.subject is None:
            return ["qui", *self.phrase.french(noun)]
        rest = self.phrase.french(self.subject, fronted=noun)
        return ["que|qu'", *self.subject.french(), *rest]


@dataclass(frozen=True)
class _Place:
    """A preposition with its landmark, after a noun or after a verb."""

    preposition: str
    landmark: _NounPhrase

    def english(self, _noun: _NounPhrase | None = None) -> Words:
        """Return preposition, landmark."""
        return [self.preposition, *self.landmark.english()]

    def french(self, _noun: _NounPhrase | None = None) -> Words:
        """Return preposition, landmark."""
        return [*PREPOSITIONS[self.preposition].split(), *self.landmark.french()]


@dataclass(frozen=True)
class _Clause:
    """A subject with what is said of it, and perhaps a second thing said after a link."""

    subject: _Nominal
    phrase: _VerbPhrase | _Being
    link: str = ""
    pronoun: Pronoun | None = None
    sequel: _VerbPhrase | _Being | None = None

    def english(self) -> Words:
        """Return the clause and its sequel."""
        words = self.subject.english() + self.phrase.english(self.subject)
        if self.sequel:
            words += [self.link, *(self.pronoun.english() if self.pronoun else [])]
            words += self.sequel.english(self.pronoun or self.subject)
        return words

    def french(self) -> Words:
        """Return the clause and its sequel."""
        words = self.subject.french() + self.phrase.french(self.subject)
        if self.sequel:
            words += [*LINKS[self.link].split(), *(self.pronoun.french() if self.pronoun else [])]
            words += self.sequel.french(self.pronoun or self.subject)
        return words


# ------------------------------------------------------------------ from words to a sentence


def _spell(words: Words, vowels: str, aspirated: Collection[str] = ()) -> str:
    """Choose between the forms of each word by the letter that opens the next one."""
    spelt: Words = []
    for word in filter(None, reversed(words)):
        usual, _, before_vowel = word.partition("|")
        vowel = spelt and spelt[-1][0] in vowels and spelt[-1] not in aspirated
        spelt.append(before_vowel if vowel and before_vowel else usual)
    return " ".join(reversed(spelt))


def _english(tree: _NounPhrase | _Clause) -> str:
    """Write a tree in English: a dog, an old dog."""
    return _spell(tree.english(), "aeiou")


def _french(tree: _NounPhrase | _Clause) -> str:
    """Write a tree in French: le bel arbre, l'arbre, le hibou, près du jardin."""
    text = _spell(tree.french(), "aeéiouhœ", aspirated=("hibou", "hiboux"))
    return text.replace("' ", "'").replace(" de le ", " du ").replace(" de les ", " des ")


# ------------------------------------------------------------------ drawing a tree


class _Author:
    """Draws trees from a source of random numbers."""

    def __init__(self, source: random.Random) -> None:
        self.random = source

    def sentence(self) -> _NounPhrase | _Clause:
        """Draw one of the six shapes of a sentence."""
        shapes = (self.mention, self.act, self.deed, self.state, self.pursuit, self.reason)
        (shape,) = self.random.choices(shapes, weights=(24, 14, 26, 12, 14, 10))
        return shape()

    def mention(self) -> _NounPhrase:
        """Draw “the big red dog” or “the girl near the tree”."""
        phrase = self.noun_phrase(NOUNS, adjectives=0.4, bare_plural=True)
        if self.maybe(0.15):
            return replace(phrase, modifier=self.place())
        return self.with_relative(phrase, 0.25)

    def act(self) -> _Clause:
        """Draw “the dog sleeps in the garden”."""
        subject = self.subject()
        return _Clause(subject, self.intransitive(subject))

    def deed(self) -> _Clause:
        """Draw “the dog does not see a cat” or “she sees him”."""
        verb = self.random.choice(TRANSITIVE)
        if self.maybe(0.15):  # a relative clause on the one side or on the other
            subject, thing = self.subject(0.0), self.with_relative(self.object(verb), 1.0)
            return _Clause(subject, self.verb_phrase(subject, verb, thing))
        subject = self.subject()
        if suits(verb, HUMANS[0]) and self.maybe(0.25):
            others = _SEEN[2:] if subject.person == 1 else _SEEN
            return _Clause(subject, self.verb_phrase(subject, verb, self.random.choice(others)))
        return _Clause(subject, self.verb_phrase(subject, verb, self.object(verb)))

    def state(self) -> _Clause:
        """Draw “the apple is not red”."""
        subject = self.noun_phrase(NOUNS, adjectives=0.0, indefinite=False)
        adjectives = [a for a in ADJECTIVES if suits(a, subject.noun)]
        being = _Being(self.random.choice(adjectives), self.maybe(0.3), self.maybe(0.25))
        return _Clause(subject, being)

    def pursuit(self) -> _Clause:
        """Draw “the girl finds an apple and eats it”."""
        subject = self.subject(relative=0.0)
        # What has been eaten can be neither seen nor bought.
        verb = self.random.choice([v for v in TRANSITIVE if v.base != "eat"])
        thing = self.object(verb)
        phrase = _VerbPhrase(verb, self.maybe(0.35), object=thing)
        second = self.random.choice([v for v in TRANSITIVE if v != verb and suits(v, thing.noun)])
        negated = self.maybe(0.3)
        sequel = _VerbPhrase(second, phrase.past, negated, thing.pronoun())
        return _Clause(subject, phrase, "but" if negated else "and", sequel=sequel)

    def reason(self) -> _Clause:
        """Draw “the cows stay near the house because they are tired”."""
        subject = self.noun_phrase(LIVING)
        phrase = self.intransitive(subject)
        being = _Being(self.random.choice(MOODS), phrase.past, self.maybe(0.2))
        return _Clause(subject, phrase, "because", subject.pronoun(), being)

    def subject(self, relative: float = 0.2) -> _Nominal:
        """Draw who acts: a pronoun, or a noun with a relative clause now and then."""
        if self.maybe(0.3):
            return self.random.choice(_ACTING)
        return self.with_relative(self.noun_phrase(LIVING), relative)

    def object(self, verb: Verb) -> _NounPhrase:
        """Draw what a verb acts on."""
        nouns = [noun for noun in NOUNS if suits(verb, noun)]
        # One loves “les pommes” in French, never “des pommes”.
        definite = verb.base == "love"
        return self.noun_phrase(nouns, indefinite=not definite, bare_plural=not definite)

    def intransitive(self, subject: _Nominal) -> _VerbPhrase:
        """Draw an act without object, often with a place."""
        place = self.place() if self.maybe(0.4) else None
        return self.verb_phrase(subject, self.random.choice(INTRANSITIVE), place=place)

    def place(self) -> _Place:
        """Draw where something is."""
        preposition = self.random.choice(tuple(PREPOSITIONS))
        return _Place(preposition, self.noun_phrase(LANDMARKS, adjectives=0.1))

    def verb_phrase(
        self,
        subject: _Nominal,
        verb: Verb,
        thing: _Nominal | None = None,
        *,
        fronted: _NounPhrase | None = None,
        place: _Place | None = None,
    ) -> _VerbPhrase:
        """Draw tense and negation; no participle may need a gender that English hides."""
        leading = thing if isinstance(thing, Pronoun) else fronted
        model = subject if verb.auxiliary == "être" else leading
        past = self.maybe(0.35) and not (model and model.gender == "?")
        return _VerbPhrase(verb, past, self.maybe(0.25), thing, place)

    def with_relative(self, phrase: _NounPhrase, chance: float) -> _NounPhrase:
        """Add “who sings”, “that sees a cat” or “that I saw” by chance."""
        if not self.maybe(chance):
            return phrase
        if phrase.noun in LIVING and self.maybe(0.25):
            return replace(phrase, modifier=_Relative(self.intransitive(phrase)))
        if phrase.noun in LIVING and self.maybe(0.33):
            verb = self.random.choice(TRANSITIVE)
            done = self.verb_phrase(phrase, verb, self.object(verb))
            return replace(phrase, modifier=_Relative(done))
        subject = self.subject(relative=0.0)
        verb = self.random.choice([verb for verb in TRANSITIVE if suits(verb, phrase.noun)])
        suffered = self.verb_phrase(subject, verb, fronted=phrase)
        return replace(phrase, modifier=_Relative(suffered, subject))

    def noun_phrase(
        self,
        nouns: Sequence[Noun],
        *,
        adjectives: float = 0.15,
        indefinite: bool = True,
        bare_plural: bool = False,
    ) -> _NounPhrase:
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
        return _NounPhrase(determiner, tuple(chosen), noun, plural)

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
    author = _Author(random.Random(seed))
    pairs: dict[str, str] = {}
    while len(pairs) < count:
        tree = author.sentence()
        source = _english(tree)
        if _SHORTEST <= len(source.split()) <= _LONGEST:
            pairs[source] = _french(tree)
    return list(pairs.items())


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
    if train < 0 or held_out < 1:
        raise ValueError(f"train must be at least 0 and held_out at least 1: {train}, {held_out}")
    drawn = [pair for pair in sample_pairs(train + held_out, seed) if pair != _SHOWPIECE]
    return drawn[:train], [_SHOWPIECE, *drawn[train : train + held_out - 1]]
