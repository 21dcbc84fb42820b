"""
The syntax trees of the toy corpus: who does what to whom, and where.

A tree belongs to no language. `heedful.data.toy_grammar.english` and
`heedful.data.toy_grammar.french` realize it in words; `heedful.data.toy_grammar.generator` draws
trees.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.data.toy_grammar.lexicon import HUMANS, PRONOUNS, Adjective, Noun, Pronoun, Verb


@dataclass(frozen=True)
class NounPhrase:
    """
    A determiner, adjectives, a noun, and a modifier after it.

    “The big red dog”, “the girl near the tree”, “the owl that I saw”.
    """

    determiner: str
    """A key of `DETERMINERS` in the lexicon: the, a, my or this."""
    adjectives: tuple[Adjective, ...]
    """In English order."""
    noun: Noun
    plural: bool
    modifier: "Relative | Place | None" = None
    """The modifier after the noun."""
    person: int = 3
    """Grammatical person, always 3; pronouns have the same field."""

    @property
    def gender(self) -> str:
        """Gender of the noun."""
        return self.noun.gender

    @property
    def is_human(self) -> bool:
        """Whether English uses “who” and “he” or “she” for it."""
        return self.noun in HUMANS

    def pronoun(self) -> Pronoun:
        """Return its third-person pronoun."""
        # English hides the gender of non-humans; French never does.
        if self.plural:
            return PRONOUNS[f"they-{self.gender}"]
        if self.is_human:
            return PRONOUNS["she" if self.gender == "f" else "he"]
        return PRONOUNS[f"it-{self.gender}"]


Nominal = NounPhrase | Pronoun


@dataclass(frozen=True)
class VerbPhrase:
    """A verb with its object or place. “Does not see a cat”, “sees him”, “slept in the garden”."""

    verb: Verb
    past: bool = False
    """Whether it is in the past tense."""
    negated: bool = False
    object: Nominal | None = None
    place: "Place | None" = None


@dataclass(frozen=True)
class CopulaPhrase:
    """A form of “to be” with an adjective."""

    adjective: Adjective
    past: bool
    negated: bool


@dataclass(frozen=True)
class Relative:
    """A relative clause, in which the noun before it is the subject or the object."""

    phrase: VerbPhrase
    subject: Nominal | None = None
    """The subject; None if the noun itself is the subject."""


@dataclass(frozen=True)
class Place:
    """A preposition with its landmark, after a noun or verb."""

    preposition: str
    """The English preposition."""
    landmark: NounPhrase


@dataclass(frozen=True)
class Clause:
    """
    A subject with its predicate, and perhaps a second predicate after a conjunction.

    “The girl finds an apple and eats it”, “the cows stay because they are tired”.
    """

    subject: Nominal
    phrase: VerbPhrase | CopulaPhrase
    """The predicate."""
    link: str = ""
    """The conjunction: and, but or because."""
    pronoun: Pronoun | None = None
    """The pronoun that stands for the subject after the conjunction."""
    sequel: VerbPhrase | CopulaPhrase | None = None
    """The second predicate."""


Tree = NounPhrase | Clause


def conjugate(forms: Sequence[str], subject: Nominal) -> str:
    """Return the form of a verb that agrees with its subject."""
    return forms[2 * subject.plural + (subject.person == 3)]
