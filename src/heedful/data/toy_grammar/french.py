"""
French realization of a tree.

Articles, adjectives and some participles agree with the gender of the noun. Most adjectives follow
the noun, and object pronouns precede the verb. A negation encloses the verb, and many words change
before a vowel.
"""

from heedful.data.toy_grammar.alignment import (
    SurfaceToken,
    TaggedWord,
    choose_forms,
    nest_words,
    tag_words,
)
from heedful.data.toy_grammar.lexicon import (
    AUXILIARIES,
    DETERMINERS,
    ETAIT,
    LINKS,
    PREPOSITIONS,
    Adjective,
    Pronoun,
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
    conjugate,
)

_VOWELS = "aeéiouhœ"
_ASPIRATED = ("hibou", "hiboux")
_CONTRACTED = {"le": "du", "les": "des"}
_NE = TaggedWord("ne|n'", "negation", core=False)
_PAS = TaggedWord("pas", "negation")


def french(tree: Tree) -> list[SurfaceToken]:
    """Realize a tree in French: “le bel arbre”, “l'arbre”, “le hibou”, “près du jardin”."""
    words = _clause(tree) if isinstance(tree, Clause) else _noun_phrase(tree)
    tokens: list[SurfaceToken] = []
    for word in choose_forms(words, _VOWELS, _ASPIRATED):
        last = tokens[-1] if tokens else SurfaceToken("", ())
        if last.text.endswith("'"):
            tokens[-1] = SurfaceToken(last.text + word.form, (*last.words, word))
        elif last.text == "de" and word.form in _CONTRACTED:
            tokens[-1] = SurfaceToken(_CONTRACTED[word.form], (*last.words, word))
        else:
            tokens.append(SurfaceToken(word.form, (word,)))
    return tokens


def _agree(adjective: Adjective, subject: Nominal) -> str:
    """Return the form that agrees with a noun or a pronoun."""
    if subject.gender == "f":
        return adjective.des_f if subject.plural else adjective.une
    return adjective.des_m if subject.plural else adjective.un


def _nominal(subject: Nominal) -> list[TaggedWord]:
    """Realize a subject."""
    return (
        tag_words(subject.sujet, "noun") if isinstance(subject, Pronoun) else _noun_phrase(subject)
    )


def _noun_phrase(node: NounPhrase, negated: bool = False) -> list[TaggedWord]:
    """Realize article, noun, and the adjectives around the noun from the inside out."""
    adjectives = [(a.side, TaggedWord(_agree(a, node), a.group)) for a in node.adjectives]
    before = [word for side, word in adjectives if side == "before"]
    after = [word for side, word in reversed(adjectives) if side == "after"]
    article = DETERMINERS[node.determiner][4 if node.plural else 2 + (node.gender == "f")]
    if node.determiner == "a" and (negated or (node.plural and before)):
        article = "de|d'"  # pas un chien -> pas de chien; des gros chiens -> de gros chiens
    words = tag_words(article, "article")
    if node.determiner == "a" and node.plural:
        words = [
            TaggedWord(article, "noun", core=False)
        ]  # “dogs” has no article, “des chiens” has one
    words += before + tag_words(node.noun.des if node.plural else node.noun.un, "noun") + after
    if isinstance(node.modifier, Relative):
        words += nest_words("relative", _relative(node.modifier, node))
    elif node.modifier:
        words += nest_words("place", _place(node.modifier))
    return words


def _verb_phrase(
    node: VerbPhrase, subject: Nominal, fronted: Nominal | None = None
) -> list[TaggedWord]:
    """Realize ne, object pronoun, verb, pas, participle, object, place."""
    pronoun = node.object if isinstance(node.object, Pronoun) else None
    words, participle = _tense(node, subject, fronted or pronoun)
    if pronoun:
        words = tag_words(pronoun.objet, "object noun") + words
    if node.negated:
        words = [_NE, *words, _PAS]
    words += participle
    if isinstance(node.object, NounPhrase):
        words += nest_words("object", _noun_phrase(node.object, node.negated))
    return words + (nest_words("place", _place(node.place)) if node.place else [])


def _tense(
    node: VerbPhrase, subject: Nominal, leading: Nominal | None
) -> tuple[list[TaggedWord], list[TaggedWord]]:
    """Realize the finite verb and the participle; `leading` is an object before the verb."""
    verb = node.verb
    if not node.past:
        return tag_words(conjugate((verb.je, verb.il, verb.nous, verb.ils), subject), "verb"), []
    participle = verb.participle
    model = subject if verb.auxiliary == "être" else leading
    if model:
        participle += "e" * (model.gender == "f") + "s" * model.plural
    auxiliary = conjugate(AUXILIARIES[verb.auxiliary], subject)
    return [TaggedWord(auxiliary, "verb", core=False)], tag_words(participle, "verb")


def _being(node: CopulaPhrase, subject: Nominal) -> list[TaggedWord]:
    """Realize a form of “être”, perhaps with “ne” and “pas”, and the adjective."""
    words = tag_words(conjugate(ETAIT if node.past else AUXILIARIES["être"], subject), "verb")
    if node.negated:
        words = [_NE, *words, _PAS]
    return words + tag_words(_agree(node.adjective, subject), "adjective")


def _relative(node: Relative, noun: NounPhrase) -> list[TaggedWord]:
    """Realize “qui” or “que”, and the rest; the participle agrees with a preceding object."""
    if node.subject is None:
        return tag_words("qui", "link") + _verb_phrase(node.phrase, noun)
    subject = nest_words("subject", _nominal(node.subject))
    return tag_words("que|qu'", "link") + subject + _verb_phrase(node.phrase, node.subject, noun)


def _place(node: Place) -> list[TaggedWord]:
    """Realize preposition and landmark."""
    return tag_words(PREPOSITIONS[node.preposition], "preposition") + _noun_phrase(node.landmark)


def _clause(node: Clause) -> list[TaggedWord]:
    """Realize the clause and its sequel."""
    words = nest_words("subject", _nominal(node.subject)) + _predicate(node.phrase, node.subject)
    if node.sequel:
        words += tag_words(LINKS[node.link], "link")
        if node.pronoun:
            words += nest_words("again", _nominal(node.pronoun))
        words += nest_words("sequel", _predicate(node.sequel, node.pronoun or node.subject))
    return words


def _predicate(node: VerbPhrase | CopulaPhrase, subject: Nominal) -> list[TaggedWord]:
    """Realize a predicate."""
    return _being(node, subject) if isinstance(node, CopulaPhrase) else _verb_phrase(node, subject)
