"""How English says a tree: do in negations, adjectives before the noun, “an” before a vowel."""

from heedful.data.toy_grammar.alignment import Said, Token, said, spell, within
from heedful.data.toy_grammar.lexicon import BE, DETERMINERS, DO, WAS, Pronoun
from heedful.data.toy_grammar.syntax_tree import (
    Being,
    Clause,
    Nominal,
    NounPhrase,
    Place,
    Relative,
    Tree,
    VerbPhrase,
    conjugate,
)


def english(tree: Tree) -> list[Token]:
    """
    Write a tree in English.

    Parameters
    ----------
    tree : NounPhrase or Clause
        What to say.

    Returns
    -------
    list of Token
        The words in order.

    Notes
    -----
    “A dog”, “an old dog”.
    """
    words = _clause(tree) if isinstance(tree, Clause) else _noun_phrase(tree)
    return [Token(word.form, (word,)) for word in spell(words, "aeiou")]


def _nominal(who: Nominal) -> list[Said]:
    """Say a subject."""
    return said(who.subject, "noun") if isinstance(who, Pronoun) else _noun_phrase(who)


def _noun_phrase(node: NounPhrase) -> list[Said]:
    """Say determiner, adjectives, noun."""
    words = said(DETERMINERS[node.determiner][node.plural], "article")
    words += [Said(adjective.english, adjective.group) for adjective in node.adjectives]
    words += said(node.noun.many if node.plural else node.noun.one, "noun")
    if isinstance(node.modifier, Relative):
        words += within("relative", _relative(node.modifier, node))
    elif node.modifier:
        words += within("place", _place(node.modifier))
    return words


def _verb_phrase(node: VerbPhrase, subject: Nominal) -> list[Said]:
    """Say verb, object, place; a negation needs “do”."""
    verb = node.verb
    if node.negated:
        do = "did" if node.past else conjugate(DO, subject)
        words = [Said(do, "verb", core=False), Said("not", "negation"), Said(verb.base, "verb")]
    elif node.past:
        words = said(verb.past, "verb")
    else:
        words = said(conjugate((verb.base, verb.third, verb.base, verb.base), subject), "verb")
    if isinstance(node.object, Pronoun):
        words += said(node.object.object, "object noun")
    elif node.object:
        words += within("object", _noun_phrase(node.object))
    return words + (within("place", _place(node.place)) if node.place else [])


def _being(node: Being, subject: Nominal) -> list[Said]:
    """Say is, not, adjective."""
    words = said(conjugate(WAS if node.past else BE, subject), "verb")
    words += said("not", "negation") if node.negated else []
    return words + said(node.adjective.english, "adjective")


def _relative(node: Relative, noun: NounPhrase) -> list[Said]:
    """Say who or that, and the rest of the clause."""
    if node.subject is None:
        who = "who" if noun.is_human else "that"
        return said(who, "link") + _verb_phrase(node.phrase, noun)
    subject = within("subject", _nominal(node.subject))
    return said("that", "link") + subject + _verb_phrase(node.phrase, node.subject)


def _place(node: Place) -> list[Said]:
    """Say preposition, landmark."""
    return said(node.preposition, "preposition") + _noun_phrase(node.landmark)


def _clause(node: Clause) -> list[Said]:
    """Say the clause and its sequel."""
    words = within("subject", _nominal(node.subject)) + _predicate(node.phrase, node.subject)
    if node.sequel:
        words += said(node.link, "link")
        if node.pronoun:
            words += within("again", _nominal(node.pronoun))
        words += within("sequel", _predicate(node.sequel, node.pronoun or node.subject))
    return words


def _predicate(node: VerbPhrase | Being, subject: Nominal) -> list[Said]:
    """Say what is said of a subject."""
    return _being(node, subject) if isinstance(node, Being) else _verb_phrase(node, subject)
