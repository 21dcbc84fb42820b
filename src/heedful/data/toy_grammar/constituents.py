"""
The phrases of English sentences of the toy corpus, with labels and tags like the Penn Treebank's.

::

    the owl that i saw sleeps
    (S (NP (NP (DT the) (NN owl)) (SBAR (WHNP (WDT that)) (S (NP (PRP i)) (VP (VBD saw)))))
       (VP (VBZ sleeps)))

Words are separated by spaces. There are no traces and no function tags. The Penn Treebank allows
two tags for “tired”; here the tag is JJ. A clause with “because” after a negated verb is a sister
of “did”, “not” and the verb phrase; it is not part of the verb phrase.
"""

from collections.abc import Iterator
from typing import Any

from heedful.data.toy_grammar.corpus import split_trees
from heedful.data.toy_grammar.english import english
from heedful.data.toy_grammar.lexicon import DETERMINERS, Pronoun
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

# A label with its parts, or a tag alone, which stands for the next word.
_Phrase = tuple[str, list[Any]]


def split_brackets(train: int, held_out: int, seed: int) -> tuple[list[str], list[str]]:
    """Draw the sentences of `split_pairs` as bracketed trees."""
    parts = split_trees(train, held_out, seed)
    training, unseen = ([brackets(tree) for tree in part] for part in parts)
    return training, unseen


def brackets(tree: Tree) -> str:
    """Write the phrases of a sentence."""
    words = (token.text for token in english(tree))
    phrase = _clause(tree) if isinstance(tree, Clause) else _noun_phrase(tree)
    written = _write(phrase, words)
    assert next(words, None) is None, written
    return written


def _write(part: Any, words: Iterator[str]) -> str:
    """Write a phrase, or the next word with its tag."""
    if isinstance(part, str):
        return f"({part} {next(words)})"
    label, parts = part
    return f"({label} {' '.join(_write(child, words) for child in parts)})"


def _nominal(node: Nominal) -> _Phrase:
    """Build a subject or an object."""
    return ("NP", ["PRP"]) if isinstance(node, Pronoun) else _noun_phrase(node)


def _noun_phrase(node: NounPhrase) -> _Phrase:
    """Build determiner, adjectives, noun, and the modifier that follows the noun."""
    tag = "PRP$" if node.determiner == "my" else "DT"
    parts: list[Any] = [tag] * len(DETERMINERS[node.determiner][node.plural].split())
    parts += ["JJ"] * len(node.adjectives)
    parts += ["NNS" if node.plural else "NN"]
    if node.modifier is None:
        return "NP", parts
    if isinstance(node.modifier, Relative):
        return "NP", [("NP", parts), _relative(node.modifier, node)]
    return "NP", [("NP", parts), _place(node.modifier)]


def _verb_phrase(node: VerbPhrase, subject: Nominal) -> _Phrase:
    """Build verb, object, place; a negation is above the verb."""
    parts: list[Any] = [] if node.object is None else [_nominal(node.object)]
    parts += [] if node.place is None else [_place(node.place)]
    finite = _finite(node.past, subject)
    if node.negated:
        return "VP", [finite, "RB", ("VP", ["VB", *parts])]
    return "VP", [finite, *parts]


def _predicate(node: VerbPhrase | CopulaPhrase, subject: Nominal) -> _Phrase:
    """Build a predicate."""
    if isinstance(node, VerbPhrase):
        return _verb_phrase(node, subject)
    negation = ["RB"] * node.negated
    return "VP", [_finite(node.past, subject), *negation, ("ADJP", ["JJ"])]


def _finite(past: bool, subject: Nominal) -> str:
    """Choose the tag of a finite verb."""
    if past:
        return "VBD"
    return "VBZ" if subject.person == 3 and not subject.plural else "VBP"


def _relative(node: Relative, noun: NounPhrase) -> _Phrase:
    """Build the relative pronoun and the rest of the clause."""
    if node.subject is None:
        who = "WP" if noun.is_human else "WDT"
        return "SBAR", [("WHNP", [who]), ("S", [_verb_phrase(node.phrase, noun)])]
    clause = [_nominal(node.subject), _verb_phrase(node.phrase, node.subject)]
    return "SBAR", [("WHNP", ["WDT"]), ("S", clause)]


def _place(node: Place) -> _Phrase:
    """Build preposition and landmark."""
    landmark = _noun_phrase(node.landmark)
    if node.preposition == "in front of":
        return "PP", ["IN", ("NP", [("NP", ["NN"]), ("PP", ["IN", landmark])])]
    return "PP", ["IN", landmark]


def _clause(node: Clause) -> _Phrase:
    """Build the clause and its sequel."""
    subject, first = _nominal(node.subject), _predicate(node.phrase, node.subject)
    if node.sequel is None:
        return "S", [subject, first]
    second = _predicate(node.sequel, node.pronoun or node.subject)
    if node.pronoun is None:
        return "S", [subject, ("VP", [first, "CC", second])]
    reason = ("SBAR", ["IN", ("S", [_nominal(node.pronoun), second])])  # because
    return "S", [subject, ("VP", [*first[1], reason])]
