"""
The trees of the embedded corpus: who does what to whom, and where.

A tree belongs to no language. `heedful.data.toy_grammar.english` and
`heedful.data.toy_grammar.french` each say it in their own words; `heedful.data.toy_grammar.corpus`
draws one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.data.toy_grammar.lexicon import HUMANS, PRONOUNS, Adjective, Noun, Pronoun, Verb


@dataclass(frozen=True)
class NounPhrase:
    """
    A determiner, adjectives, a noun, and what is said about it behind it.

    Attributes
    ----------
    determiner : str
        A name of the lexicon: the, a, my or this.
    adjectives : tuple of Adjective
        In English order.
    noun : Noun
        What it is about.
    plural : bool
        Whether it stands for many.
    modifier : Relative or Place, optional
        What follows the noun.
    person : int, default 3
        Grammatical person, as pronouns have one.

    Notes
    -----
    “The big red dog”, “the girl near the tree”, “the owl that I saw”.
    """

    determiner: str
    adjectives: tuple[Adjective, ...]
    noun: Noun
    plural: bool
    modifier: "Relative | Place | None" = None
    person: int = 3

    @property
    def gender(self) -> str:
        """The gender of the noun."""
        return self.noun.gender

    @property
    def is_human(self) -> bool:
        """Whether English says “who” and “he” or “she” of it."""
        return self.noun in HUMANS

    def pronoun(self) -> Pronoun:
        """
        Find the third person that stands for it.

        Returns
        -------
        Pronoun
            It, he, she or they, with the French gender of the noun.

        Notes
        -----
        English hides the gender of what is no human; French never does.
        """
        if self.plural:
            return PRONOUNS[f"they-{self.gender}"]
        if self.is_human:
            return PRONOUNS["she" if self.gender == "f" else "he"]
        return PRONOUNS[f"it-{self.gender}"]


Nominal = NounPhrase | Pronoun


@dataclass(frozen=True)
class VerbPhrase:
    """
    What is said of a subject: a verb with its object or with a place.

    Attributes
    ----------
    verb : Verb
        What is done.
    past : bool, default False
        Whether it is over.
    negated : bool, default False
        Whether it is not so.
    object : NounPhrase or Pronoun, optional
        To whom it is done.
    place : Place, optional
        Where.

    Notes
    -----
    “Does not see a cat”, “sees him”, “slept in the garden”.
    """

    verb: Verb
    past: bool = False
    negated: bool = False
    object: Nominal | None = None
    place: "Place | None" = None


@dataclass(frozen=True)
class CopulaPhrase:
    """
    What a subject is: a form of to be and an adjective.

    Attributes
    ----------
    adjective : Adjective
        What it is.
    past : bool
        Whether it was so.
    negated : bool
        Whether it is not so.

    Notes
    -----
    “Is red”, “were not tired”.
    """

    adjective: Adjective
    past: bool
    negated: bool


@dataclass(frozen=True)
class Relative:
    """
    A relative clause: its noun acts in it, or is acted on by a subject of its own.

    Attributes
    ----------
    phrase : VerbPhrase
        What is done.
    subject : NounPhrase or Pronoun, optional
        Who does it; the noun itself when absent.

    Notes
    -----
    “Who sings”, “that I saw”.
    """

    phrase: VerbPhrase
    subject: Nominal | None = None


@dataclass(frozen=True)
class Place:
    """
    A preposition with its landmark, after a noun or after a verb.

    Attributes
    ----------
    preposition : str
        The English one.
    landmark : NounPhrase
        A place.

    Notes
    -----
    “In front of the house”.
    """

    preposition: str
    landmark: NounPhrase


@dataclass(frozen=True)
class Clause:
    """
    A subject with what is said of it, and perhaps a second thing said after a link.

    Attributes
    ----------
    subject : NounPhrase or Pronoun
        Who.
    phrase : VerbPhrase or CopulaPhrase
        What is said of it.
    link : str, default ''
        And, but or because.
    pronoun : Pronoun, optional
        The subject once more, behind the link.
    sequel : VerbPhrase or CopulaPhrase, optional
        What else is said of it.

    Notes
    -----
    “The girl finds an apple and eats it”, “the cows stay because they are tired”.
    """

    subject: Nominal
    phrase: VerbPhrase | CopulaPhrase
    link: str = ""
    pronoun: Pronoun | None = None
    sequel: VerbPhrase | CopulaPhrase | None = None


Tree = NounPhrase | Clause


def conjugate(forms: Sequence[str], subject: Nominal) -> str:
    """
    Find the form of a verb that agrees with its subject.

    Parameters
    ----------
    forms : sequence of str
        For I, a third person, we, they.
    subject : NounPhrase or Pronoun
        Who acts.

    Returns
    -------
    str
        One of the four.

    Notes
    -----
    Both languages need no more than these four here.
    """
    return forms[2 * subject.plural + (subject.person == 3)]
