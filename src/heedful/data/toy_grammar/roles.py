"""
Agents, verbs and patients of toy-corpus sentences: gold answers for attention heads.

The grammar draws a sentence as a tree, so its subject, verb and object are known without a parser.
"""

from typing import NamedTuple

from heedful.data.toy_grammar.corpus import sample_trees
from heedful.data.toy_grammar.english import english
from heedful.data.toy_grammar.syntax_tree import Clause, Tree, VerbPhrase

# Two sentences in five have an object; this many are drawn for each requested sentence.
_DRAWN = 3


class RoledSentence(NamedTuple):
    """
    A sentence with agent, verb and patient.

    Agent and patient are each a noun or a pronoun, without article and adjectives. The verb is the
    main verb, not “did”. Relative clauses and a second predicate are ignored. A second predicate
    may have a pronoun: “the girl finds an apple and eats it”.
    """

    text: str
    subject: int
    verb: int
    object: int
    """Indices of agent, verb and patient, from 0; spaces separate words."""
    pronoun: int | None = None
    """Index of a later pronoun that refers to the object: “it”, “him”, “them”."""


def sample_roles(size: int, seed: int) -> list[RoledSentence]:
    """
    Draw sentences with subject, verb and object.

    `size`: number of sentences, at least 0.

    A longer list with the same seed starts with the shorter one.

    >>> one = sample_roles(1, seed=1)[0]
    >>> one.subject < one.verb < one.object
    True
    """
    sentences: list[RoledSentence] = []
    drawn = _DRAWN * size
    while len(sentences) < size:
        sentences = [roled for tree in sample_trees(drawn, seed) if (roled := _find_roles(tree))]
        drawn *= 2
    return sentences[:size]


def _find_roles(tree: Tree) -> RoledSentence | None:
    """Find the three words of a clause; None if one is missing."""
    if not (
        isinstance(tree, Clause) and isinstance(tree.phrase, VerbPhrase) and tree.phrase.object
    ):
        return None
    tokens = english(tree)
    places = {
        word.of: number for number, token in enumerate(tokens) for word in token.words if word.core
    }
    return RoledSentence(
        " ".join(token.text for token in tokens),
        places["subject noun"],
        places["verb"],
        places["object noun"],
        places.get("sequel object noun"),
    )
