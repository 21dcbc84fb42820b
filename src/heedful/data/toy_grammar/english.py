"""English realization of a tree: do-support, adjectives before the noun, “an” before a vowel."""

from heedful.data.toy_grammar.alignment import (
    SurfaceToken,
    TaggedWord,
    choose_forms,
    nest_words,
    tag_words,
)
from heedful.data.toy_grammar.lexicon import BE, DETERMINERS, DO, WAS, Pronoun
from heedful.data.toy_grammar.syntax_tree import (
    Clause,
    CopulaPhrase,
    Nominal,
    NounPhrase,
    Place,
    Relative,
    Tree,
    VerbPhrase,
    conjugate,
)


def english(tree: Tree) -> list[SurfaceToken]:
    """Realize a tree in English."""
    words = _clause(tree) if isinstance(tree, Clause) else _noun_phrase(tree)
    return [SurfaceToken(word.form, (word,)) for word in choose_forms(words, "aeiou")]


def _nominal(subject: Nominal) -> list[TaggedWord]:
    """Realize a subject."""
    return (
        tag_words(subject.subject, "noun")
        if isinstance(subject, Pronoun)
        else _noun_phrase(subject)
    )


def _noun_phrase(node: NounPhrase) -> list[TaggedWord]:
    """Realize determiner, adjectives, noun."""
    words = tag_words(DETERMINERS[node.determiner][node.plural], "article")
    words += [TaggedWord(adjective.english, adjective.group) for adjective in node.adjectives]
    words += tag_words(node.noun.plural if node.plural else node.noun.singular, "noun")
    if isinstance(node.modifier, Relative):
        words += nest_words("relative", _relative(node.modifier, node))
    elif node.modifier:
        words += nest_words("place", _place(node.modifier))
    return words


def _verb_phrase(node: VerbPhrase, subject: Nominal) -> list[TaggedWord]:
    """Realize verb, object, place; a negation needs “do”."""
    verb = node.verb
    if node.negated:
        do = "did" if node.past else conjugate(DO, subject)
        words = [
            TaggedWord(do, "verb", core=False),
            TaggedWord("not", "negation"),
            TaggedWord(verb.base, "verb"),
        ]
    elif node.past:
        words = tag_words(verb.past, "verb")
    else:
        words = tag_words(conjugate((verb.base, verb.third, verb.base, verb.base), subject), "verb")
    if isinstance(node.object, Pronoun):
        words += tag_words(node.object.object, "object noun")
    elif node.object:
        words += nest_words("object", _noun_phrase(node.object))
    return words + (nest_words("place", _place(node.place)) if node.place else [])


def _being(node: CopulaPhrase, subject: Nominal) -> list[TaggedWord]:
    """Realize a form of “be”, perhaps “not”, and the adjective."""
    words = tag_words(conjugate(WAS if node.past else BE, subject), "verb")
    words += tag_words("not", "negation") if node.negated else []
    return words + tag_words(node.adjective.english, "adjective")


def _relative(node: Relative, noun: NounPhrase) -> list[TaggedWord]:
    """Realize the relative pronoun and the rest of the clause."""
    if node.subject is None:
        who = "who" if noun.is_human else "that"
        return tag_words(who, "link") + _verb_phrase(node.phrase, noun)
    subject = nest_words("subject", _nominal(node.subject))
    return tag_words("that", "link") + subject + _verb_phrase(node.phrase, node.subject)


def _place(node: Place) -> list[TaggedWord]:
    """Realize preposition and landmark."""
    return tag_words(node.preposition, "preposition") + _noun_phrase(node.landmark)


def _clause(node: Clause) -> list[TaggedWord]:
    """Realize the clause and its sequel."""
    words = nest_words("subject", _nominal(node.subject)) + _predicate(node.phrase, node.subject)
    if node.sequel:
        words += tag_words(node.link, "link")
        if node.pronoun:
            words += nest_words("again", _nominal(node.pronoun))
        words += nest_words("sequel", _predicate(node.sequel, node.pronoun or node.subject))
    return words


def _predicate(node: VerbPhrase | CopulaPhrase, subject: Nominal) -> list[TaggedWord]:
    """Realize a predicate."""
    return _being(node, subject) if isinstance(node, CopulaPhrase) else _verb_phrase(node, subject)
